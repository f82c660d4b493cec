//go:build !amd64 && !arm64

package simd

// geometries is empty: there is no assembly for this processor.
var geometries map[string]Geometry
