// Functions made of additions, multiplications, divisions and roots alone, which have one right answer: every GPU gives the
// same bits. Polynomials and ranges are those of the CPU's tape (after Cephes, Moshier).
#pragma once

__device__ __forceinline__ float exponential(float x)
{
    // Comparisons and not min and max, which would lose what is not a number.
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float SHIFT = 12582912.0f;
    float shifted = x * 1.44269504f + SHIFT, n = shifted - SHIFT;
    float r = x - n * 0.6933594f - n * -2.1219444e-4f;
    float p = 1.9875691e-4f;
    p = p * r + 1.3982e-3f;
    p = p * r + 8.333452e-3f;
    p = p * r + 4.1665796e-2f;
    p = p * r + 1.6666666e-1f;
    p = p * r + 0.5f;
    float scale = __uint_as_float((__float_as_uint(shifted) - __float_as_uint(SHIFT) + 127u) << 23);
    return (p * r * r + r + 1.0f) * scale;
}

// Natural logarithm of a positive, normal number.
__device__ __forceinline__ float logarithm(float y)
{
    u32 bits = __float_as_uint(y);
    int exponent = (int)(bits >> 23) - 126;
    float m = __uint_as_float((bits & 0x7fffffu) | 0x3f000000u);
    if (m < 0.70710678f) {
        exponent -= 1;
        m = m + m;
    }
    float x = m - 1.0f, e = (float)exponent;
    float p = 7.0376836e-2f;
    p = p * x - 1.151461e-1f;
    p = p * x + 1.1676999e-1f;
    p = p * x - 1.2420141e-1f;
    p = p * x + 1.4249323e-1f;
    p = p * x - 1.6668057e-1f;
    p = p * x + 2.0000715e-1f;
    p = p * x - 2.4999994e-1f;
    p = p * x + 3.333333e-1f;
    float tail = p * x * x * x + e * -2.1219444e-4f - 0.5f * x * x;
    return x + tail + e * 0.6933594f;
}

__device__ __forceinline__ float hyperbolic(float x) { return 1.0f - 2.0f / (exponential(x + x) + 1.0f); }
__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

#define SLOPE 0.7978845608f
#define CUBIC 0.044715f

__device__ __forceinline__ float gelu(float x)
{
    return 0.5f * x * (1.0f + hyperbolic(SLOPE * (x + CUBIC * x * x * x)));
}

__device__ __forceinline__ float gelu_slope(float x)
{
    float t = hyperbolic(SLOPE * (x + CUBIC * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * SLOPE * (1.0f + 3.0f * CUBIC * x * x);
}

#define ALL_LANES 0xffffffffu

__device__ __forceinline__ float sum_of_warp(float x)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) x += __shfl_xor_sync(ALL_LANES, x, lane);
    return x;
}

__device__ __forceinline__ float most_of_warp(float x)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) x = fmaxf(x, __shfl_xor_sync(ALL_LANES, x, lane));
    return x;
}

// Of all threads of a block of at most 1024, for each of them; `shared` has 32 places and is free again afterwards.
__device__ __forceinline__ float sum_of_block(float x, float *shared)
{
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = sum_of_warp(x);
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = sum_of_warp(lane < blockDim.x / 32 ? shared[lane] : 0.0f);
    __syncthreads();
    return x;
}

__device__ __forceinline__ float most_of_block(float x, float *shared)
{
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    x = most_of_warp(x);
    if (lane == 0) shared[warp] = x;
    __syncthreads();
    x = most_of_warp(shared[lane < blockDim.x / 32 ? lane : 0]);
    __syncthreads();
    return x;
}

// Elements of a buffer, each taken once by one of all threads.
#define EACH(i, n)                                                                                                      \
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x, step = (u64)gridDim.x * blockDim.x; i < (n); i += step)
