package simd

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"libeman/tests/need"
)

// Each word in the assembly of NEON is the instruction that its comment says,
// by the disassembler of binutils.
func TestWordsAreWhatTheirCommentsSay(t *testing.T) {
	const disassembler = "aarch64-linux-gnu-objdump"
	if _, err := exec.LookPath(disassembler); err != nil {
		need.Missing(t, err)
	}
	words := [][]string{}
	for _, name := range []string{"neon_arm64.s", "geometry_neon_arm64.s"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.*)$`).FindAllStringSubmatch(string(text), -1)...)
	}
	var code []byte
	for _, word := range words {
		value, err := strconv.ParseUint(word[1], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		code = binary.LittleEndian.AppendUint32(code, uint32(value))
	}
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, code, 0o600); err != nil {
		t.Fatal(err)
	}
	listing, err := exec.Command(disassembler, "-D", "-z", "-b", "binary", "-m", "aarch64", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *[0-9a-f]+:\t[0-9a-f]{8} \t(.*)$`).FindAllStringSubmatch(string(listing), -1)
	if len(words) == 0 || len(found) != len(words) {
		t.Fatalf("%d words, %d instructions", len(words), len(found))
	}
	space := regexp.MustCompile(`\s+`)
	for i, word := range words {
		if instruction := space.ReplaceAllString(found[i][1], " "); instruction != word[2] {
			t.Errorf("%s is %q, not %q", word[1], instruction, word[2])
		}
	}
}
