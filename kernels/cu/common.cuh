// What every kernel shares: the generator of test words, its hash, and where a block runs.
// No headers: NVRTC compiles these files as they are.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// Finaliser of MurmurHash3: a bijection on 32 bits, so that no two states of a digest collapse into one.
__device__ __forceinline__ u32 mix(u32 x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ (x >> 16);
}

// Word number `word` of the pattern `seed`. Any word can be made without its neighbours, by host or device.
__device__ __forceinline__ u32 pattern(u32 seed, u64 word)
{
    return mix((u32)word + mix(seed ^ ((u32)(word >> 32) * 0x9e3779b1u)));
}

// A digest that took in `value`. A bijection in `digest` for every value: a fault that once changed it stays seen.
__device__ __forceinline__ u32 fold(u32 digest, u32 value)
{
    return (digest ^ value) * 0x9e3779b1u + 0x7f4a7c15u;
}

__device__ __forceinline__ u32 bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ u32 bits(int x) { return x; }
__device__ __forceinline__ u32 bits(u32 x) { return x; }
__device__ __forceinline__ u32 bits(double x) { return __double2loint(x) ^ __double2hiint(x); }

__device__ __forceinline__ u32 sm_id()
{
    u32 id;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
    return id;
}

__device__ __forceinline__ u64 cycles()
{
    u64 now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
    return now;
}
