package npz

import (
	"os"
	"path/filepath"
	"testing"
)

// Golden returns the folder of the reference vectors, shared/golden beside the
// repository. Where it does not exist the test is skipped, or fails when the
// environment variable CI is "true".
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
		if os.Getenv("CI") == "true" {
			t.Fatalf("the reference vectors are missing: %v", err)
		}
		t.Skipf("skipped: the reference vectors are missing: %v", err)
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
