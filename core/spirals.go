package core

// Spirals are for each vertex the vertices of its spiral, itself first.
type Spirals struct {
	length  int
	indices []int32 // [vertices, length]
}

func (s *Spirals) of(p int) []int32 { return s.indices[p*s.length:][:s.length] }

func (s *Spirals) vertices() int { return len(s.indices) / s.length }
