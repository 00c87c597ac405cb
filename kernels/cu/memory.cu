// How fast memory is moved, how long one access takes, and which pages keep what was written.
// Threads touch 16 bytes at a time, each element once, grid-stride, so that one launch shape fits all devices.
#include "common.cuh"

#define WIDE 4

__device__ __forceinline__ uint4 load(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(from));
    return v;
}

__device__ __forceinline__ uint4 load_l2(const uint4 *from)
{
    uint4 v;
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(from));
    return v;
}

__device__ __forceinline__ void store(uint4 *to, uint4 v)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1,%2,%3,%4};"
                 :
                 : "l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

extern "C" __global__ void empty() {}

// Keeps one thread busy for at least `count` cycles.
extern "C" __global__ void spin(u64 count)
{
    u64 begin = cycles();
    while (cycles() - begin < count) {
    }
}

// Writes the pattern `seed`; `vectors` counts 16-byte elements, here and below.
extern "C" __global__ void __launch_bounds__(512) fill(uint4 *to, u64 vectors, u32 seed)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        uint4 v;
        v.x = pattern(seed, 4 * i);
        v.y = pattern(seed, 4 * i + 1);
        v.z = pattern(seed, 4 * i + 2);
        v.w = pattern(seed, 4 * i + 3);
        store(to + i, v);
    }
}

// All loads of a round are in flight before its first store.
extern "C" __global__ void __launch_bounds__(512) copy(uint4 *to, const uint4 *from, u64 vectors)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (WIDE - 1) * step < vectors; i += WIDE * step) {
        uint4 v[WIDE];
#pragma unroll
        for (int k = 0; k < WIDE; k++) v[k] = load(from + i + k * step);
#pragma unroll
        for (int k = 0; k < WIDE; k++) store(to + i + k * step, v[k]);
    }
    for (; i < vectors; i += step) store(to + i, load(from + i));
}

// The sum of each 16 bytes' exclusive or.
template <uint4 LOAD(const uint4 *)> __device__ __forceinline__ u32 total(const uint4 *from, u64 vectors)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    for (; i + (WIDE - 1) * step < vectors; i += WIDE * step) {
        uint4 v[WIDE];
#pragma unroll
        for (int k = 0; k < WIDE; k++) v[k] = LOAD(from + i + k * step);
#pragma unroll
        for (int k = 0; k < WIDE; k++) sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    for (; i < vectors; i += step) {
        uint4 v = LOAD(from + i);
        sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    return sum;
}

__device__ __forceinline__ void leave(u32 sum, u32 *digest)
{
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if ((threadIdx.x & 31) == 0) atomicAdd(digest, sum);
}

// Reads everything; the fold of what was read keeps the loads alive and can be checked.
extern "C" __global__ void __launch_bounds__(512) read(const uint4 *from, u64 vectors, u32 *digest)
{
    leave(total<load>(from, vectors), digest);
}

// Reads what L2 holds, `times` over.
extern "C" __global__ void __launch_bounds__(512) reread(const uint4 *from, u64 vectors, u32 times, u32 *digest)
{
    u32 sum = 0;
#pragma unroll 1
    for (u32 turn = 0; turn < times; turn++) sum += total<load_l2>(from, vectors);
    leave(sum, digest);
}

// The square of every element.
extern "C" __global__ void __launch_bounds__(512) square(float4 *to, const float4 *from, u64 vectors)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        float4 v = from[i];
        to[i] = make_float4(v.x * v.x, v.y * v.y, v.z * v.z, v.w * v.w);
    }
}

// STREAM's triad on doubles, two per access.
extern "C" __global__ void __launch_bounds__(512) triad(double2 *a, const double2 *b, const double2 *c, double scalar,
                                                        u64 vectors)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        double2 x = b[i], y = c[i];
        x.x += scalar * y.x;
        x.y += scalar * y.y;
        a[i] = x;
    }
}

// One thread follows a chain of offsets through memory, past L1. Cycles of `steps` dependent loads, and where it ended, which
// is where the next one begins: the same loads again would come from L2. `sm` chooses the multiprocessor: all other blocks leave.
extern "C" __global__ void chase(const u32 *chain, u32 steps, u32 sm, u64 *out)
{
    if (sm_id() != sm || threadIdx.x != 0) return;
    u32 at = (u32)out[1];
    for (u32 k = 0; k < steps / 4; k++) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at));
    u64 begin = cycles();
#pragma unroll 1
    for (u32 k = 0; k < steps; k++) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at));
    u64 end = cycles();
    out[0] = end - begin;
    out[1] = at;
}

// One record per page: wrong words, all their wrong bits, the first wrong word and the cycles it took.
struct Page {
    u32 wrong, bits, first, cycles;
};

// Compares pages of `vectors` elements with the pattern `seed`, one block at a time per page.
extern "C" __global__ void __launch_bounds__(256) pages(const uint4 *from, u32 count, u32 vectors, u32 seed, Page *out)
{
    __shared__ u32 wrong, bits, first;
    for (u32 page = blockIdx.x; page < count; page += gridDim.x) {
        if (threadIdx.x == 0) {
            wrong = 0;
            bits = 0;
            first = 0xffffffffu;
        }
        __syncthreads();
        u64 begin = cycles();
        for (u32 i = threadIdx.x; i < vectors; i += blockDim.x) {
            u64 vector = (u64)page * vectors + i;
            uint4 v = load(from + vector);
            u32 got[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u32 differ = got[k] ^ pattern(seed, 4 * vector + k);
                if (differ) {
                    atomicAdd(&wrong, 1u);
                    atomicOr(&bits, differ);
                    atomicMin(&first, 4 * i + k);
                }
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            Page record = {wrong, bits, first, (u32)(cycles() - begin)};
            out[page] = record;
        }
        __syncthreads();
    }
}
