# scripts; each skips with 77
