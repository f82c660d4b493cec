package simd

// geometries is the kernels by instruction set.
var geometries = map[string]Geometry{
	"avx512": &doubles{"avx512", 8, fillCentersAVX512, positionColumnsAVX512, frameColumnsAVX512, wedgesAVX512, relTanAVX512, sumRingsAVX512, framesAVX512, tangentsAVX512, edges32AVX512, edges64AVX512},
	"avx2":   &doubles{"avx2", 4, fillCentersAVX2, positionColumnsAVX2, frameColumnsAVX2, wedgesAVX2, relTanAVX2, sumRingsAVX2, framesAVX2, tangentsAVX2, edges32AVX2, edges64AVX2},
}
