// Matrix products of a training step, C = A * B (+ bias, or + C) with edges of any length and operands that lie either way.
// For tensor cores operands are packed first: rounded to bf16, along k, in whole tiles filled up with zeros. Where a result
// has few tiles the sums are shared out along k and added in the order of the shares; how many there are depends on the
// shape alone, so every GPU gives the same bits.
#include "tile.cuh"

// Rows and elements along k of a tile to be packed.
#define SIDE 64
// bf16 of a row in shared memory: one bank further each row.
#define PITCH 66

// Packs `rows` x `deep` numbers, stored so or (`across`) deep x rows, to rows of `pitch` elements along k. They may be stored as
// several matrices of `part` elements along k each, the last one first. `blocked`: as warpgroups want them, 128 rows of 128 bytes
// one after the other, pieces of 16 bytes at their number xor the row's.
extern "C" __global__ void __launch_bounds__(256)
    pack_bf16(unsigned char *to, const float *from, u32 rows, u32 deep, u32 part, u32 pitch, u32 across, u32 blocked)
{
    __shared__ u16 tile[SIDE * PITCH];
    u32 slices = pitch / SIDE, slice = blockIdx.x % slices;
    u32 row0 = blockIdx.x / slices * SIDE, deep0 = slice * SIDE, fast = threadIdx.x % SIDE;
    u32 k0 = deep0 + fast, step = across ? rows : part;
    u64 begin = across ? (u64)deep0 * rows + row0 + fast : (u64)((deep - 1 - k0) / part * rows + row0) * part + k0 % part;
#pragma unroll 4
    for (u32 slow = threadIdx.x / SIDE; slow < SIDE; slow += 256 / SIDE) {
        u32 row = across ? fast : slow, k = across ? slow : fast;
        u64 at = begin + (u64)slow * step;
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
    u32 share = blockIdx.y / down, tile = blockIdx.y % down, first = share * per;
    float sum[4][4][4];
    Packed load = {a + (u64)tile * TILE * pitch + first * ROW, b + (u64)blockIdx.x * TILE * pitch + first * ROW, pitch};
    multiply<Bf16>(sum, load, min(per, pitch / ROW - first), warp_row(), warp_column());
    finish(result(c, act, bias, m, n, add, share), sum, tile * TILE + warp_row(), blockIdx.x * TILE + warp_column());
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
extern "C" __global__ void __launch_bounds__(256)
    product_f32(float *c, float *act, const float *bias, const float *a, const float *b, u32 m, u32 n, u32 k, u32 a_across,
                u32 b_across, u32 per, u32 down, u32 add)
{
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * TILE, column0 = blockIdx.x * TILE, first = share * per;
    Matrix left = {a, m, k, row0, a_across}, right = {b, n, k, column0, !b_across};
    add_up(result(c, act, bias, m, n, add, share), left, right, row0, column0, first, min(k, first + per));
}
