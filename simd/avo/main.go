// Command avo writes the assembly of package simd, one file for each
// instruction set. It is a module of its own, so that the library does not
// depend on the generator; `go generate ./simd` runs it.
//
// Every kernel is written once, for a width: AVX-512 has 32 registers of 16
// numbers, AVX2 with FMA 16 of 8, and NEON, whose bodies are its own, 32 of 4
// that are taken as pairs. A strip of a panel, or the Lanes = 16
// channels of a row, is one of the former or two of the latter.
package main

import (
	"flag"
	"os"
	"regexp"

	"github.com/mmcloughlin/avo/build"
)

// edges is the number of edges whose phases, coefficients and transported
// features are held at a time: edgeChunk of package simd.
const edges = 64

// Bytes between the arrays of such a chunk, and between the transported
// features of two edges: 2·MaxOrder+1 rows of Lanes float32.
const (
	arrayBytes = 4 * edges
	edgeBytes  = 9 * rowBytes
	rowBytes   = 64
	rowLanes   = rowBytes / 4
	// coefficientBytes is what lies between the coefficients of two sets: 1,
	// and cosine and sine for each order up to MaxOrder.
	coefficientBytes = 9 * arrayBytes
)

func main() {
	name := flag.String("isa", "avx512", "instruction set: avx2, avx512 or neon")
	out := flag.String("o", "", "assembly file")
	stubs := flag.String("s", "", "file of the Go declarations")
	table := flag.String("t", "", "file of the table of the functions")
	family := flag.String("kernels", "networks", "kernels to write: networks or geometry")
	flag.Parse()
	set := map[string]isa{"avx2": avx2, "avx512": avx512, "neon": neonPairs}[*name]
	assembly := *out
	if *name == "neon" {
		build.ConstraintExpr("arm64")
		assembly = os.DevNull // of amd64: only the declarations are wanted
	} else {
		build.ConstraintExpr("amd64")
	}
	if *family == "geometry" {
		set.geometry()
	} else {
		set.products()
		set.elementwise()
		set.exponentials()
		set.circles()
		set.edgeKernels()
		set.backward()
		set.writeTable(*table)
	}

	flag.Set("out", assembly)
	flag.Set("stubs", *stubs)
	flag.Set("pkg", "simd")
	build.Generate()
	if *name == "neon" {
		set.writeNEON(*family, *out, *stubs)
	} else {
		set.checkRegisters(*out)
	}
}

// checkRegisters stops where a kernel needs more than the 16 registers that
// AVX2 has: avo goes on to those of AVX-512.
func (s isa) checkRegisters(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	if found := regexp.MustCompile(`[XYZ](1[6-9]|[23]\d)\b`).Find(text); found != nil && !s.wide() {
		panic("a kernel needs " + string(found))
	}
}
