module libeman

go 1.26

require (
	github.com/golang/mock v1.6.0
	github.com/klauspost/cpuid/v2 v2.4.2 // indirect
	golang.org/x/sys v0.41.0 // indirect
	gonum.org/v1/gonum v0.17.0
)
