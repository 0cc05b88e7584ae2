"""The paper's problems: raw rows of DAPO-Math-17k and four benchmarks, cleaned, checked, split."""
