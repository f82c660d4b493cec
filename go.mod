module libeman

go 1.26

require (
	github.com/golang/mock v1.6.0
	gonum.org/v1/gonum v0.17.0
)
