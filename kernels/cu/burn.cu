// Whether every multiprocessor computes the same bits in the same time.
// Each block works on operands made from `seed` and its thread numbers alone, so all blocks of a seed must agree. Values
// are folded into the digest and started again every few steps: a sum that runs on can swallow a fault.
#include "common.cuh"

// One per block: where it ran, what it computed, how long it took.
struct Share {
    u32 sm, digest;
    u64 cycles;
};

#define CHAINS 8
#define DEPTH 8

__device__ __forceinline__ void leave(u32 digest, u64 begin, Share *out)
{
    __shared__ u32 warps[32];
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) digest += mix(__shfl_xor_sync(0xffffffffu, digest, lane));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = digest;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 all = 0;
        for (u32 w = 0; w < (blockDim.x + 31) / 32; w++) all = fold(all, warps[w]);
        Share share = {sm_id(), all, cycles() - begin};
        out[blockIdx.x] = share;
    }
}

__device__ __forceinline__ u64 enter()
{
    __syncthreads();
    return cycles();
}

// Two bf16 between 0.5 and 2 in size, any sign, all mantissa bits in use.
__device__ __forceinline__ u32 bf16_pair(u32 word)
{
    return (word & 0x80ff80ffu) | 0x3f003f00u;
}

// `rounds` rounds of 64 tensor-core products of 16x8x16.
extern "C" __global__ void __launch_bounds__(512, 1) burn_mma(u32 seed, u32 rounds, Share *out)
{
    u64 begin = enter();
    u32 a[DEPTH / 2][4], b[2][2], digest = seed;
    u32 word = threadIdx.x * 64;
#pragma unroll
    for (int i = 0; i < DEPTH / 2; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) a[i][j] = bf16_pair(pattern(seed, word + 4 * i + j));
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) b[i][j] = bf16_pair(pattern(seed, word + 32 + 2 * i + j));
#pragma unroll 1
    for (u32 round = 0; round < rounds; round++) {
        float c[CHAINS][4];
#pragma unroll
        for (int k = 0; k < CHAINS; k++)
#pragma unroll
            for (int j = 0; j < 4; j++) c[k][j] = (float)(k + 1);
#pragma unroll
        for (int i = 0; i < DEPTH; i++)
#pragma unroll
            for (int k = 0; k < CHAINS; k++)
                asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                             "{%8,%9}, {%0,%1,%2,%3};"
                             : "+f"(c[k][0]), "+f"(c[k][1]), "+f"(c[k][2]), "+f"(c[k][3])
                             : "r"(a[(i + k) % (DEPTH / 2)][0]), "r"(a[(i + k) % (DEPTH / 2)][1]),
                               "r"(a[(i + k) % (DEPTH / 2)][2]), "r"(a[(i + k) % (DEPTH / 2)][3]), "r"(b[i % 2][0]),
                               "r"(b[i % 2][1]));
#pragma unroll
        for (int k = 0; k < CHAINS; k++)
#pragma unroll
            for (int j = 0; j < 4; j++) digest = fold(digest, __float_as_uint(c[k][j]));
        // Other mantissas in the next round, the same on every multiprocessor.
        u32 turn = pattern(seed, round) & 0x007f007fu;
#pragma unroll
        for (int i = 0; i < DEPTH / 2; i++) a[i][i] ^= turn;
        b[0][0] ^= turn;
        b[1][1] ^= turn >> 1 & 0x003f003fu;
    }
    leave(digest, begin, out);
}

__device__ __forceinline__ float start(float, u32 word) { return __uint_as_float((word & 0x007fffffu) | 0x3f800000u); }
__device__ __forceinline__ double start(double, u32 word)
{
    return __hiloint2double((word & 0x000fffff) | 0x3ff00000, word * 0x9e3779b1u);
}
__device__ __forceinline__ u32 start(u32, u32 word) { return word; }
__device__ __forceinline__ float step(float x, float m, float a) { return __fmaf_rn(x, m, a); }
__device__ __forceinline__ double step(double x, double m, double a) { return __fma_rn(x, m, a); }
__device__ __forceinline__ u32 step(u32 x, u32 m, u32 a) { return x * m + a; }

// `rounds` rounds of 64 multiply-adds, eight chains of eight.
template <typename T> __device__ __forceinline__ void burn(u32 seed, u32 rounds, Share *out)
{
    u64 begin = enter();
    u32 digest = seed, word = threadIdx.x * 64;
    T m = start(T(), pattern(seed, word)), a = start(T(), pattern(seed, word + 1));
#pragma unroll 1
    for (u32 round = 0; round < rounds; round++) {
        T x[CHAINS];
#pragma unroll
        for (int k = 0; k < CHAINS; k++) x[k] = start(T(), mix(word + k + 2 + round * 8));
#pragma unroll
        for (int i = 0; i < DEPTH; i++)
#pragma unroll
            for (int k = 0; k < CHAINS; k++) x[k] = step(x[k], m, a);
#pragma unroll
        for (int k = 0; k < CHAINS; k++) digest = fold(digest, bits(x[k]));
    }
    leave(digest, begin, out);
}

extern "C" __global__ void __launch_bounds__(512, 1) burn_ffma(u32 seed, u32 rounds, Share *out) { burn<float>(seed, rounds, out); }
extern "C" __global__ void __launch_bounds__(512, 1) burn_dfma(u32 seed, u32 rounds, Share *out) { burn<double>(seed, rounds, out); }
extern "C" __global__ void __launch_bounds__(512, 1) burn_imad(u32 seed, u32 rounds, Share *out) { burn<u32>(seed, rounds, out); }
