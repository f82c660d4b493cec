// Package need is what tests do about things that a machine may lack.
package need

import (
	"os"
	"testing"
)

// Missing skips a test for want of something, and says of what. With CI=true it
// fails the test: a run that skips what it should prove proves nothing.
func Missing(t testing.TB, what any) {
	t.Helper()
	if InCI() {
		t.Fatalf("CI must have it: %v", what)
	}
	t.Skip(what)
}

// InCI says whether this is a run of continuous integration.
func InCI() bool { return os.Getenv("CI") == "true" }
