"""RelTan features and equivariant mesh attention networks."""
