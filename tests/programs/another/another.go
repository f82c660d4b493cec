// A second Go library in one process with libeman; see two_runtimes.c.
package main

import "C"

// another_sum adds the numbers below n, on goroutines, and makes work for the
// garbage collector.
//
//export another_sum
func another_sum(n C.int) C.longlong {
	sums := make(chan []int64)
	for begin := range 4 {
		go func() {
			part := make([]int64, 1000)
			for i := begin; i < int(n); i += 4 {
				part[i%1000] += int64(i)
			}
			sums <- part
		}()
	}
	total := int64(0)
	for range 4 {
		for _, x := range <-sums {
			total += x
		}
	}
	return C.longlong(total)
}

func main() {}
