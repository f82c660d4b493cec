package npz

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"libeman/tests/need"
)

// Golden returns the folder of the reference vectors, shared/golden beside the
// repository, or leaves the test where it does not exist (need.Missing).
func Golden(t testing.TB) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the working directory")
		}
		root = filepath.Dir(root)
	}
	folder := filepath.Join(filepath.Dir(root), "shared", "golden")
	if _, err := os.Stat(folder); err != nil {
		need.Missing(t, fmt.Errorf("the reference vectors: %w", err))
	}
	return folder
}

// MustRead reads one file of the reference vectors.
func MustRead(t testing.TB, name string) File {
	t.Helper()
	file, err := Read(filepath.Join(Golden(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
