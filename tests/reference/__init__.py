"""The paper's formulas in plain numpy and float64: what libeman is tested against. See README.md."""
