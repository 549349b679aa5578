# Scripts that hold the tree to its style.
