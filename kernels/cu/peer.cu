// All GPUs of a node add up what each of them has: every GPU sums its own chunk of all inputs (reduce-scatter), then
// fetches the chunks of the others (all-gather). A GPU only reads its peers, and writes its own memory.
//
// The halves are two kernels, ordered by events between streams: no kernel waits for another GPU, so a GPU that does not
// come leaves an event that does not happen instead of a loop that holds all others.
#include "common.cuh"

#define WIDE 4

__device__ __forceinline__ float4 load(const float4 *from)
{
    float4 v;
    asm volatile("ld.global.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(from));
    return v;
}

// Word `word` of GPU `rank`: a number of 16 bits, so that sums of them are exact in any order.
__device__ __forceinline__ float summand(u32 seed, u32 rank, u64 word)
{
    return (float)(pattern(seed + rank, word) & 0xffffu);
}

// `vectors` counts 16-byte elements, here and below.
extern "C" __global__ void __launch_bounds__(512) fill_summands(float4 *to, u64 vectors, u32 seed, u32 rank)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
        to[i] = make_float4(summand(seed, rank, 4 * i), summand(seed, rank, 4 * i + 1), summand(seed, rank, 4 * i + 2),
                            summand(seed, rank, 4 * i + 3));
}

// Sums elements `begin` to `begin + vectors` of `count` inputs, in their order, so that every run gives the same bits.
extern "C" __global__ void __launch_bounds__(512) reduce_peers(float4 *to, const float4 *const *inputs, u32 count,
                                                               u64 begin, u64 vectors)
{
    u64 step = (u64)gridDim.x * blockDim.x, end = begin + vectors;
    u64 i = begin + (u64)blockIdx.x * blockDim.x + threadIdx.x;
    for (; i + (WIDE - 1) * step < end; i += WIDE * step) {
        float4 sum[WIDE];
#pragma unroll
        for (int k = 0; k < WIDE; k++) sum[k] = make_float4(0, 0, 0, 0);
#pragma unroll 1
        for (u32 peer = 0; peer < count; peer++) {
            const float4 *from = inputs[peer];
            float4 v[WIDE];
#pragma unroll
            for (int k = 0; k < WIDE; k++) v[k] = load(from + i + k * step);
#pragma unroll
            for (int k = 0; k < WIDE; k++) {
                sum[k].x += v[k].x;
                sum[k].y += v[k].y;
                sum[k].z += v[k].z;
                sum[k].w += v[k].w;
            }
        }
#pragma unroll
        for (int k = 0; k < WIDE; k++) to[i + k * step] = sum[k];
    }
    for (; i < end; i += step) {
        float4 sum = make_float4(0, 0, 0, 0);
        for (u32 peer = 0; peer < count; peer++) {
            float4 v = load(inputs[peer] + i);
            sum.x += v.x;
            sum.y += v.y;
            sum.z += v.z;
            sum.w += v.w;
        }
        to[i] = sum;
    }
}

// Fetches from each peer the chunk that it summed. Blocks are dealt to peers, so that all ways are busy at a time; there
// are at least `count - 1` of them.
extern "C" __global__ void __launch_bounds__(512) gather_peers(float4 *to, const float4 *const *outputs, u32 count,
                                                               u32 rank, u64 chunk)
{
    u32 others = count - 1;
    u32 peer = (rank + 1 + blockIdx.x % others) % count;
    // Blocks that serve the same peer.
    u32 blocks = gridDim.x / others + (blockIdx.x % others < gridDim.x % others);
    const float4 *from = outputs[peer];
    u64 step = (u64)blocks * blockDim.x, end = (peer + 1) * chunk;
    u64 i = peer * chunk + (u64)(blockIdx.x / others) * blockDim.x + threadIdx.x;
    for (; i + (WIDE - 1) * step < end; i += WIDE * step) {
        float4 v[WIDE];
#pragma unroll
        for (int k = 0; k < WIDE; k++) v[k] = load(from + i + k * step);
#pragma unroll
        for (int k = 0; k < WIDE; k++) to[i + k * step] = v[k];
    }
    for (; i < end; i += step) to[i] = load(from + i);
}

// One record per page of `vectors` elements: words that are not the sum of all ranks, their wrong bits, the first of them.
struct Sums {
    u32 wrong, bits, first, none;
};

extern "C" __global__ void __launch_bounds__(256) check_sums(const float *from, u32 pages, u32 vectors, u32 seed,
                                                             u32 count, Sums *out)
{
    __shared__ u32 wrong, bits, first;
    for (u32 page = blockIdx.x; page < pages; page += gridDim.x) {
        if (threadIdx.x == 0) {
            wrong = 0;
            bits = 0;
            first = 0xffffffffu;
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < 4 * vectors; i += blockDim.x) {
            u64 word = (u64)page * vectors * 4 + i;
            float sum = 0;
            for (u32 rank = 0; rank < count; rank++) sum += summand(seed, rank, word);
            u32 differ = __float_as_uint(from[word]) ^ __float_as_uint(sum);
            if (differ) {
                atomicAdd(&wrong, 1u);
                atomicOr(&bits, differ);
                atomicMin(&first, i);
            }
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            Sums record = {wrong, bits, first, 0};
            out[page] = record;
        }
        __syncthreads();
    }
}

// Folds every word with its place into two sums, whose order is of no matter: equal memory has equal sums, and other memory
// other ones but by chance.
extern "C" __global__ void __launch_bounds__(512) digest_words(const u32 *from, u64 words, u32 seed, u32 *digest)
{
    u64 step = (u64)gridDim.x * blockDim.x;
    u32 one = 0, two = 0;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step) {
        u32 word = from[i], at = pattern(seed, i);
        one += mix(word ^ at);
        two += mix(word + at);
    }
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) {
        one += __shfl_xor_sync(0xffffffffu, one, lane);
        two += __shfl_xor_sync(0xffffffffu, two, lane);
    }
    if ((threadIdx.x & 31) == 0) {
        atomicAdd(digest, one);
        atomicAdd(digest + 1, two);
    }
}
