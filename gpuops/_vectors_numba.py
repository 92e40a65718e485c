"""The vector registers of this machine, for loops that are written in LLVM IR."""

from __future__ import annotations

from llvmlite import binding

_FEATURES = binding.get_host_cpu_features()
VECTOR_BYTES = 64 if _FEATURES.get("avx512f") else 32 if _FEATURES.get("avx2") else 16
FUSED = bool(_FEATURES.get("fma") or _FEATURES.get("neon"))  # otherwise fma would be a function call for every lane

# Rows of a register tile of two vectors a row. It needs ROWS x 2 accumulators, two vectors of one operand, one
# broadcast element of the other and one sum: 32 registers are enough for 8 rows, 16 registers for 4 rows.
ROWS = 8 if _FEATURES.get("avx512f") or _FEATURES.get("neon") else 4
