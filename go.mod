module libeman

go 1.26.0

require (
	github.com/golang/mock v1.6.0
	github.com/klauspost/cpuid/v2 v2.3.0
	gonum.org/v1/gonum v0.17.0
)

require golang.org/x/sys v0.49.0 // indirect
