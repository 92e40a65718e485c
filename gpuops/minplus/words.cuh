// What a kernel for one arithmetic computes with.
//
// Macros: ARITHMETIC, a struct of arithmetic.cuh.
#pragma once

#include "arithmetic.cuh"

using Element = ARITHMETIC::Element;
using Word = ARITHMETIC::Word;
constexpr int LANES = ARITHMETIC::LANES;
