package simd

// geometries is the kernels by instruction set.
var geometries = map[string]Geometry{
	"neon": &doubles{"neon", 4, fillCentersNEON, positionColumnsNEON, frameColumnsNEON, wedgesNEON, relTanNEON, sumRingsNEON, framesNEON, tangentsNEON, edges32NEON, edges64NEON},
}
