// Matrix products of a training step, C = A * B (+ bias, or + C) with edges of any length and operands that lie either way.
// For tensor cores operands are packed first: rounded to bf16, along k, in whole tiles filled up with zeros. Where a result
// has few tiles the sums are shared out along k and added in the order of the shares; how many there are depends on the
// shape alone, so every GPU gives the same bits.
#include "tensor.cuh"
#include "result.cuh"

typedef unsigned short u16;

// Rows and elements along k of a tile to be packed.
#define SIDE 64
// bf16 of a row in shared memory: one bank further each row.
#define PITCH 66

__device__ __forceinline__ u16 rounded(float x)
{
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

// Packs `rows` x `deep` numbers, stored so or (`across`) deep x rows, to rows of `pitch` elements along k. `blocked`: as
// warpgroups want them, 128 rows of 128 bytes one after the other, pieces of 16 bytes at their number xor the row's.
extern "C" __global__ void __launch_bounds__(256)
    pack_bf16(unsigned char *to, const float *from, u32 rows, u32 deep, u32 pitch, u32 across, u32 blocked)
{
    __shared__ u16 tile[SIDE * PITCH];
    u32 slices = pitch / SIDE, slice = blockIdx.x % slices;
    u32 row0 = blockIdx.x / slices * SIDE, deep0 = slice * SIDE, fast = threadIdx.x % SIDE;
#pragma unroll 4
    for (u32 slow = threadIdx.x / SIDE; slow < SIDE; slow += 256 / SIDE) {
        u32 row = across ? fast : slow, k = across ? slow : fast;
        u64 at = across ? (u64)(deep0 + k) * rows + row0 + row : (u64)(row0 + row) * deep + deep0 + k;
        tile[row * PITCH + k] = row0 + row < rows && deep0 + k < deep ? rounded(from[at]) : (u16)0;
    }
    __syncthreads();
#pragma unroll
    for (u32 at = threadIdx.x; at < SIDE * 8; at += 256) {
        u32 row = at / 8, piece = at % 8;
        const u32 *words = (const u32 *)tile + row * (PITCH / 2) + piece * 4;
        u64 place = ((u64)(row0 + row) * pitch + deep0) * 2 + piece * 16;
        if (blocked) {
            u32 r = row0 + row;
            place = ((u64)(r / 128) * slices + slice) * (128 * 128) + r % 128 * 128 + (piece ^ (r & 7)) * 16;
        }
        *(uint4 *)(to + place) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

// 128x128 a block; `per` slices of 64 bytes along k are a share, shares lie `down` blocks apart in y.
extern "C" __global__ void __launch_bounds__(256, 2)
    product_bf16(float *c, float *act, const float *bias, const unsigned char *a, const unsigned char *b, u32 m, u32 n,
                 u32 pitch, u32 per, u32 down, u32 add)
{
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 left = (warp % 2) * 64, right = (warp / 2) * 32;
    u32 share = blockIdx.y / down, tile = blockIdx.y % down, first = share * per;
    float sum[4][4][4];
    multiply<Bf16>(sum, a + (u64)tile * TILE * pitch + first * ROW, b + (u64)blockIdx.x * TILE * pitch + first * ROW, pitch,
                   min(per, pitch / ROW - first), left, right);
    Result to = result(c, act, bias, m, n, add, share);
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 row = tile * TILE + left + i * 16 + lane / 4, column = blockIdx.x * TILE + right + j * 8 + lane % 4 * 2;
            to.put(row, column, sum[i][j][0], sum[i][j][1]);
            to.put(row + 8, column, sum[i][j][2], sum[i][j][3]);
        }
    if (!act) return;
#pragma unroll 1
    for (u32 e = 0; e < 64; e++)
        to.activate(tile * TILE + left + e / 16 * 16 + e / 2 % 2 * 8 + lane / 4,
                    blockIdx.x * TILE + right + e / 4 % 4 * 8 + lane % 4 * 2 + e % 2);
}

// Adds the shares of a result in their order.
extern "C" __global__ void __launch_bounds__(256)
    product_sum(float *c, float *act, const float *bias, const float *parts, u32 m, u32 n, u32 shares, u32 add)
{
    Result to = {c, act, bias, m, n, add};
    u64 size = (u64)m * n;
    EACH(i, size)
    {
        float sum = 0.0f;
        for (u32 share = 0; share < shares; share++) sum += parts[share * size + i];
        u32 row = (u32)(i / n), column = (u32)(i % n);
        to.put(row, column, sum);
        if (act) to.activate(row, column);
    }
}

// The same in f32 on the ordinary units, operands as they lie. `per` elements along k are a share.
#define EDGE 128
#define DEEP 8
extern "C" __global__ void __launch_bounds__(256)
    product_f32(float *c, float *act, const float *bias, const float *a, const float *b, u32 m, u32 n, u32 k, u32 a_across,
                u32 b_across, u32 per, u32 down, u32 add)
{
    __shared__ float left[DEEP][EDGE + 4], right[DEEP][EDGE + 4];
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * EDGE, column0 = blockIdx.x * EDGE;
    u32 first = share * per, end = min(k, first + per);
    float sum[8][8];
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;
#pragma unroll 1
    for (u32 base = first; base < end; base += DEEP) {
#pragma unroll
        for (u32 l = 0; l < EDGE * DEEP / 256; l++) {
            u32 at = threadIdx.x + l * 256;
            u32 d = a_across ? at / EDGE : at % DEEP, r = a_across ? at % EDGE : at / DEEP;
            u64 from = a_across ? (u64)(base + d) * m + row0 + r : (u64)(row0 + r) * k + base + d;
            left[d][r] = base + d < end && row0 + r < m ? a[from] : 0.0f;
            d = b_across ? at % DEEP : at / EDGE, r = b_across ? at / DEEP : at % EDGE;
            from = b_across ? (u64)(column0 + r) * k + base + d : (u64)(base + d) * n + column0 + r;
            right[d][r] = base + d < end && column0 + r < n ? b[from] : 0.0f;
        }
        __syncthreads();
#pragma unroll
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
    Result to = result(c, act, bias, m, n, add, share);
#pragma unroll
    for (u32 i = 0; i < 8; i++)
#pragma unroll
        for (u32 j = 0; j < 8; j++) {
            u32 row = row0 + ty * 8 + i, column = column0 + tx + j * 16;
            if (row < m && column < n) to.put(row, column, sum[i][j]);
        }
    if (!act) return;
#pragma unroll 1
    for (u32 e = 0; e < 64; e++) to.activate(row0 + ty * 8 + e / 8, column0 + tx + e % 8 * 16);
}
