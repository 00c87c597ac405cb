// Products on tensor cores by mma.sync, C = A * B^T with both operands stored along k, 32-bit sums. A row of a tile is 64
// bytes whatever the type, and so is the place of each byte in it: one loop for all types. No edges: operands are whole tiles.
#pragma once
#include "common.cuh"

#define TILE 128
#define ROW 64
#define STAGES 4
#define STAGE_BYTES (TILE * ROW)

// A 16-byte piece of a tile row lies at its column xor the row: eight rows of ldmatrix then meet eight bank groups.
__device__ __forceinline__ u32 place(u32 row, u32 piece)
{
    return row * ROW + ((piece ^ ((row >> 1) & 3)) << 4);
}

__device__ __forceinline__ void fetch(u32 to, const unsigned char *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(to), "l"(from) : "memory");
}

// The same, or zeros.
__device__ __forceinline__ void fetch(u32 to, const unsigned char *from, bool some)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(to), "l"(from), "r"(some ? 16 : 0) : "memory");
}

// Both operands of packed tiles: `a` and `b` are their first rows, `pitch` is a row in bytes.
struct Packed {
    const unsigned char *a, *b;
    u32 pitch;
    static const bool ACROSS = false;

    __device__ __forceinline__ void operator()(u32 base, u32 tile)
    {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 row = threadIdx.x / 4 + half * 64, piece = threadIdx.x % 4;
            u64 at = (u64)row * pitch + tile * ROW + piece * 16;
            fetch(base + place(row, piece), a + at);
            fetch(base + STAGE_BYTES + place(row, piece), b + at);
        }
    }
};

__device__ __forceinline__ void four(u32 (&r)[4], u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

// Where a piece lies in a stage of an operand across k: 32 rows of 128 elements of two bytes.
__device__ __forceinline__ u32 place_across(u32 k, u32 piece) { return k * (TILE * 2) + ((piece ^ (k & 7)) << 4); }

__device__ __forceinline__ void four_across(u32 (&r)[4], u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

// Sixteen rows of an operand from `row` on, 32 bytes along k.
template <bool ACROSS> __device__ __forceinline__ void sixteen(u32 (&r)[4], u32 base, u32 row, u32 slice)
{
    u32 lane = threadIdx.x % 32;
    if (ACROSS)
        four_across(r, base + place_across(slice * 16 + lane % 8 + lane / 16 * 8, row / 8 + lane / 8 % 2));
    else
        four(r, base + place(row + lane % 16, slice * 2 + lane / 16));
}

// The product of one type: 16 rows, 8 columns, 32 bytes along k. CLASS is what holds a sum.
#define PRODUCT(NAME, INSTRUCTION, SUM, CLASS)                                                                          \
    struct NAME {                                                                                                       \
        typedef SUM Sum;                                                                                                \
        static __device__ __forceinline__ void add(SUM (&c)[4], const u32 (&x)[4], u32 y, u32 z)                        \
        {                                                                                                               \
            asm volatile("mma.sync.aligned." INSTRUCTION " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"       \
                         : CLASS(c[0]), CLASS(c[1]), CLASS(c[2]), CLASS(c[3])                                           \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y), "r"(z));                                 \
        }                                                                                                               \
    }

// 256 threads, tiles of 128x128, warps of 64x32 (two down, four across), four stages in 64 KiB of shared memory. `load` puts
// both operands of one slice into a stage, and is called once for each slice in their order. Rows `down` and columns
// `across` of the tile, and what follows them, are this warp's.
template <typename Product, typename Load>
__device__ __forceinline__ void multiply(typename Product::Sum (&sum)[4][4][4], Load &load, u32 tiles, u32 down, u32 across)
{
    extern __shared__ __align__(128) unsigned char memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory);
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
#pragma unroll
    for (u32 t = 0; t < STAGES - 1; t++) {
        if (t < tiles) load(shared + t * 2 * STAGE_BYTES, t);
        asm volatile("cp.async.commit_group;" : : : "memory");
    }
#pragma unroll 1
    for (u32 t = 0; t < tiles; t++) {
        asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2) : "memory");
        __syncthreads();
        u32 ahead = t + STAGES - 1;
        if (ahead < tiles) load(shared + (ahead % STAGES) * 2 * STAGE_BYTES, ahead);
        asm volatile("cp.async.commit_group;" : : : "memory");
        u32 base = shared + (t % STAGES) * 2 * STAGE_BYTES;
#pragma unroll
        for (u32 slice = 0; slice < 2; slice++) {
            u32 x[4][4], y[2][4];
#pragma unroll
            for (u32 i = 0; i < 4; i++) sixteen<Load::ACROSS>(x[i], base, down + i * 16, slice);
#pragma unroll
            for (u32 j = 0; j < 2; j++) sixteen<Load::ACROSS>(y[j], base + STAGE_BYTES, across + j * 16, slice);
#pragma unroll
            for (u32 i = 0; i < 4; i++)
#pragma unroll
                for (u32 j = 0; j < 4; j++) Product::add(sum[i][j], x[i], y[j / 2][j % 2], y[j / 2][j % 2 + 2]);
        }
    }
}

PRODUCT(Bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "+f");
PRODUCT(Fp16, "m16n8k16.row.col.f32.f16.f16.f32", float, "+f");
PRODUCT(Tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "+f");
PRODUCT(Int8, "m16n8k32.row.col.s32.s8.s8.s32", int, "+r");
