// Tiles of 128x128 of what a training step multiplies: on tensor cores, and on the ordinary units.
#pragma once
#include "tensor.cuh"
#include "result.cuh"

typedef unsigned short u16;

__device__ __forceinline__ u16 rounded(float x)
{
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

// Where this warp's part of a tile begins.
__device__ __forceinline__ u32 warp_row() { return threadIdx.x / 32 % 2 * 64; }
__device__ __forceinline__ u32 warp_column() { return threadIdx.x / 64 * 32; }

// Puts a warp's sums.
template <typename To> __device__ __forceinline__ void finish(const To &to, const float (&sum)[4][4][4], u32 row0, u32 column0)
{
    u32 lane = threadIdx.x % 32;
    row0 += lane / 4, column0 += lane % 4 * 2;
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            to.put(row0 + i * 16, column0 + j * 8, sum[i][j][0], sum[i][j][1]);
            to.put(row0 + i * 16 + 8, column0 + j * 8, sum[i][j][2], sum[i][j][3]);
        }
    if (!to.activates()) return;
#pragma unroll 1
    for (u32 e = 0; e < 64; e++) to.activate(row0 + e / 16 * 16 + e / 2 % 2 * 8, column0 + e / 4 % 4 * 8 + e % 2);
}

#define DEEP 8

// A slice of an operand in shared memory.
typedef float Slice[DEEP][TILE + 4];

// An operand of the ordinary units as it lies: `rows` x `deep`, or (`across`) deep x rows.
struct Matrix {
    const float *at;
    u32 rows, deep, row0, across;

    __device__ __forceinline__ void operator()(Slice &to, u32 base, u32 end)
    {
#pragma unroll
        for (u32 l = 0; l < TILE * DEEP / 256; l++) {
            u32 thread = threadIdx.x + l * 256;
            u32 d = across ? thread / TILE : thread % DEEP, r = across ? thread % TILE : thread / DEEP;
            u64 from = across ? (u64)(base + d) * rows + row0 + r : (u64)(row0 + r) * deep + base + d;
            to[d][r] = base + d < end && row0 + r < rows ? at[from] : 0.0f;
        }
    }
};

// The sums of a tile on the ordinary units, over `first` to `end` along k. An operand puts one slice after the other where it is told to.
template <typename To, typename Left, typename Right>
__device__ __forceinline__ void add_up(const To &to, Left &a, Right &b, u32 row0, u32 column0, u32 first, u32 end)
{
    __shared__ __align__(16) Slice left, right;
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[8][8];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;
#pragma unroll 1
    for (u32 base = first; base < end; base += DEEP) {
        a(left, base, end);
        b(right, base, end);
        __syncthreads();
#pragma unroll 4
        for (u32 d = 0; d < DEEP; d++) {
            float x[8], y[8];
#pragma unroll
            for (u32 i = 0; i < 8; i++) x[i] = left[d][ty * 8 + i];
#pragma unroll
            for (u32 j = 0; j < 8; j++) y[j] = right[d][tx + j * 16];
#pragma unroll
            for (int i = 0; i < 8; i++)
#pragma unroll
                for (int j = 0; j < 8; j++) sum[i][j] += x[i] * y[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 j = 0; j < 8; j++) {
        u32 column = column0 + tx + j * 16;
        if (column >= to.n) continue;
#pragma unroll
        for (u32 i = 0; i < 8; i++)
            if (row0 + ty * 8 + i < to.m) to.put(row0 + ty * 8 + i, column, sum[i][j]);
    }
    if (!to.activates()) return;
#pragma unroll 1
    for (u32 e = 0; e < 64; e++) to.activate(row0 + ty * 8 + e / 8, column0 + tx + e % 8 * 16);
}
