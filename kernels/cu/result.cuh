// Where a product of the tape goes: only rows and columns that there are, with what the operation adds.
#pragma once
#include "math.cuh"

struct Result {
    float *c;
    // GELU of the result as well, or null.
    float *act;
    // Added to each row, or null.
    const float *bias;
    u32 m, n;
    // Whether what is there is added to.
    u32 add;

    __device__ __forceinline__ void put(u32 row, u32 column, float value) const
    {
        u64 at = (u64)row * n + column;
        if (bias) value += bias[column];
        if (add) value += c[at];
        c[at] = value;
    }

    __device__ __forceinline__ bool activates() const { return act; }

    // Two columns side by side.
    __device__ __forceinline__ void put(u32 row, u32 column, float one, float two) const
    {
        if (row >= m || column >= n) return;
        if (n % 2 == 0 && !bias && !add) {
            *(float2 *)(c + (u64)row * n + column) = make_float2(one, two);
            return;
        }
        put(row, column, one);
        if (column + 1 < n) put(row, column + 1, two);
    }

    // GELU of what this thread has put; a loop of its own, once in the code.
    __device__ __forceinline__ void activate(u32 row, u32 column) const
    {
        if (row >= m || column >= n) return;
        u64 at = (u64)row * n + column;
        act[at] = gelu(c[at]);
    }
};

// Of several shares of the sums each goes to a place of its own, where they wait for `product_sum`.
__device__ __forceinline__ Result result(float *c, float *act, const float *bias, u32 m, u32 n, u32 add, u32 share)
{
    Result to = {c + (u64)share * m * n, act, bias, m, n, add};
    return to;
}
