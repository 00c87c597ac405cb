// The tensor cores of sm_90a at full rate: products of a warpgroup with both operands in shared memory.
// A row is 128 bytes along k whatever the type, swizzled: its 16-byte pieces lie at their number xor the row's, so that
// eight rows of a column meet all banks. Four products of 32 bytes along k go through one slice.
#include "common.cuh"
#include "result.cuh"

struct Share {
    u32 sm, digest;
    u64 cycles;
};

#define ROW 128
#define STEPS 4
// How far the next 32 bytes along k are in a descriptor.
#define SLICE 2
#define COLUMNS 256
#define SUMS 128

// Matrix descriptor of rows with a swizzle of 128 bytes: where it starts, and that eight rows are 1024 bytes; units of 16
// bytes. The leading offset has no meaning here.
__device__ __forceinline__ u64 describe(u32 address)
{
    return ((u64)(address & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(8 * ROW / 16) << 32 | (u64)1 << 62;
}

#define EIGHT(OF, i) OF(c[i]), OF(c[i + 1]), OF(c[i + 2]), OF(c[i + 3]), OF(c[i + 4]), OF(c[i + 5]), OF(c[i + 6]), OF(c[i + 7])
#define HALF(OF, i) \
    EIGHT(OF, i), EIGHT(OF, i + 8), EIGHT(OF, i + 16), EIGHT(OF, i + 24), EIGHT(OF, i + 32), EIGHT(OF, i + 40), EIGHT(OF, i + 48), EIGHT(OF, i + 56)
#define ALL_SUMS \
    "{" \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, " \

// The product of one type: 64 rows, 256 columns, 32 bytes along k. CLASS is what holds a sum,
// SCALES what the instruction wants behind its operands.
#define PRODUCT(NAME, INSTRUCTION, SCALES, SUM, CLASS)                                                              \
    struct NAME {                                                                                                   \
        typedef SUM Sum;                                                                                            \
        static __device__ __forceinline__ void add(SUM (&c)[SUMS], u64 x, u64 y)                                    \
        {                                                                                                           \
            asm volatile("wgmma.mma_async.sync.aligned." INSTRUCTION " " ALL_SUMS "%128, %129, 1" SCALES ";"        \
                         : HALF(CLASS, 0), HALF(CLASS, 64)                                                          \
                         : "l"(x), "l"(y));                                                                         \
        }                                                                                                           \
    }

PRODUCT(Bf16, "m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 0", float, "+f");
PRODUCT(Fp16, "m64n256k16.f32.f16.f16", ", 1, 1, 0, 0", float, "+f");
PRODUCT(Tf32, "m64n256k8.f32.tf32.tf32", ", 1, 1", float, "+f");
PRODUCT(Fp8, "m64n256k32.f32.e4m3.e4m3", ", 1, 1", float, "+f");
PRODUCT(Int8, "m64n256k32.s32.s8.s8", "", int, "+r");

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }

// Keeps the compiler from moving what uses `sum` over this.
__device__ __forceinline__ void hold(float &sum) { asm volatile("" : "+f"(sum) : : "memory"); }
__device__ __forceinline__ void hold(int &sum) { asm volatile("" : "+r"(sum) : : "memory"); }
template <typename Sum> __device__ __forceinline__ void hold(Sum (&c)[SUMS])
{
#pragma unroll
    for (int i = 0; i < SUMS; i++) hold(c[i]);
}

// Until at most `PENDING` groups of products are under way; nobody may look at the sums before.
template <int PENDING> __device__ __forceinline__ void settle()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(PENDING) : "memory");
}

extern "C" __global__ void __launch_bounds__(256, 1) burn_wgmma(u32 seed, u32 rounds, Share *out)
{
    __shared__ __align__(1024) u32 a[64 * ROW / 4], b[COLUMNS * ROW / 4];
    __shared__ u32 warps[8];
    for (u32 i = threadIdx.x; i < 64 * ROW / 4; i += blockDim.x) a[i] = (pattern(seed, i) & 0x80ff80ffu) | 0x3f003f00u;
    for (u32 i = threadIdx.x; i < COLUMNS * ROW / 4; i += blockDim.x)
        b[i] = (pattern(~seed, i) & 0x80ff80ffu) | 0x3f003f00u;
    asm volatile("fence.proxy.async;" : : : "memory");
    __syncthreads();
    u64 begin = cycles();
    u32 digest = seed ^ threadIdx.x;
    u64 left = describe((u32)__cvta_generic_to_shared(a)), right = describe((u32)__cvta_generic_to_shared(b));
#pragma unroll 1
    for (u32 round = 0; round < rounds; round++) {
        float c[SUMS];
#pragma unroll
        for (int i = 0; i < SUMS; i++) c[i] = 1.0f;
        hold(c);
        fence();
#pragma unroll
        for (u32 s = 0; s < 4 * STEPS; s++)
            Bf16::add(c, left + (s + round) % STEPS * SLICE, right + s % STEPS * SLICE);
        commit();
        settle<0>();
        hold(c);
#pragma unroll
        for (int i = 0; i < SUMS; i++) digest = fold(digest, __float_as_uint(c[i]));
    }
#pragma unroll
    for (int lane = 16; lane > 0; lane >>= 1) digest += mix(__shfl_xor_sync(0xffffffffu, digest, lane));
    if ((threadIdx.x & 31) == 0) warps[threadIdx.x / 32] = digest;
    __syncthreads();
    if (threadIdx.x == 0) {
        u32 all = 0;
        for (u32 w = 0; w < 8; w++) all = fold(all, warps[w]);
        Share share = {sm_id(), all, cycles() - begin};
        out[blockIdx.x] = share;
    }
}

// 128 rows of one slice as they lie in memory, one after the other along k, then the next 128 rows.
#define BLOCK (128 * ROW)
#define STAGE (3 * BLOCK)
#define STAGES 4
// Tiles down that are done before the next across, so that tiles done at the same time share operands in L2.
#define DEEP 16
// Warps that multiply; one more fetches.
#define WORKERS 8

__device__ __forceinline__ void barrier(u32 at, u32 arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(at), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void arrive(u32 at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
}

__device__ __forceinline__ void expect(u32 at, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(at), "r"(bytes) : "memory");
}

__device__ __forceinline__ void await(u32 at, u32 parity)
{
    u32 over;
    do {
        asm volatile("{ .reg .pred %%over; mbarrier.try_wait.parity.shared::cta.b64 %%over, [%1], %2; selp.u32 %0, 1, 0, %%over; }"
                     : "=r"(over)
                     : "r"(at), "r"(parity)
                     : "memory");
    } while (!over);
}

__device__ __forceinline__ void fetch(u32 to, const unsigned char *from, u32 full)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :
                 : "r"(to), "l"(from), "r"(BLOCK), "r"(full)
                 : "memory");
}

// Row and column of tile number `tile`.
__device__ __forceinline__ uint2 locate(u32 tile, u32 down, u32 across)
{
    u32 first = tile / (DEEP * across) * DEEP, rest = tile % (DEEP * across), rows = min(down - first, (u32)DEEP);
    return make_uint2(first + rest % rows, rest / rows);
}

// C = A * B^T, tiles of 128x256, the sums of each shared out by `per` slices. One block per multiprocessor takes one after the
// other; while two warpgroups multiply 64 rows each, a ninth warp fetches up to four slices ahead, over the end of a tile. No
// edges: operands are whole tiles. `put` gets two elements side by side, and which share they are of.
template <typename Product, typename Put>
__device__ __forceinline__ void gemm(const unsigned char *a, const unsigned char *b, u32 m, u32 n, u32 slices, u32 per, const Put &put)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    u32 shared = (u32)__cvta_generic_to_shared(memory), full = shared + STAGES * STAGE, empty = full + STAGES * 8;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    u32 down = m / 128, across = n / COLUMNS, tiles = down * across, works = tiles * ((slices + per - 1) / per), turn = 0;
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; s++) {
            barrier(full + 8 * s, 1);
            barrier(empty + 8 * s, WORKERS);
        }
        asm volatile("fence.proxy.async;" : : : "memory");
    }
    __syncthreads();
    if (warp == WORKERS) {
        if (lane != 0) return;
        for (u32 work = blockIdx.x; work < works; work += gridDim.x) {
            uint2 at = locate(work % tiles, down, across);
            u32 first = work / tiles * per, end = min(slices, first + per);
            const unsigned char *left = a + (u64)at.x * slices * BLOCK, *right = b + (u64)at.y * 2 * slices * BLOCK;
#pragma unroll 1
            for (u32 k = first; k < end; k++, turn++) {
                u32 s = turn % STAGES, to = shared + s * STAGE;
                await(empty + 8 * s, turn / STAGES + 1 & 1);
                expect(full + 8 * s, STAGE);
                fetch(to, left + (u64)k * BLOCK, full + 8 * s);
                fetch(to + BLOCK, right + (u64)k * BLOCK, full + 8 * s);
                fetch(to + 2 * BLOCK, right + (u64)(slices + k) * BLOCK, full + 8 * s);
            }
        }
        return;
    }
    for (u32 work = blockIdx.x; work < works; work += gridDim.x) {
        uint2 place = locate(work % tiles, down, across);
        u32 first = work / tiles * per, end = min(slices, first + per);
        typename Product::Sum sum[SUMS];
#pragma unroll
        for (int i = 0; i < SUMS; i++) sum[i] = 0;
        hold(sum);
#pragma unroll 1
        for (u32 k = first; k < end; k++, turn++) {
            u32 s = turn % STAGES, at = shared + s * STAGE;
            u64 left = describe(at + warp / 4 * 64 * ROW), right = describe(at + BLOCK);
            await(full + 8 * s, turn / STAGES & 1);
            fence();
#pragma unroll
            for (u32 step = 0; step < STEPS; step++)
                Product::add(sum, left + step * SLICE, right + step * SLICE);
            commit();
            settle<1>();
            // The products before these are over, and nobody here reads their stage again.
            if (k > first && lane == 0) arrive(empty + 8 * ((turn - 1) % STAGES));
        }
        settle<0>();
        hold(sum);
        if (lane == 0) arrive(empty + 8 * ((turn - 1) % STAGES));
        u32 row = place.x * 128 + warp * 16 + lane / 4, column = place.y * COLUMNS + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++) {
            put(row, column + j * 8, sum[4 * j], sum[4 * j + 1], work / tiles);
            put(row + 8, column + j * 8, sum[4 * j + 2], sum[4 * j + 3], work / tiles);
        }
        put.close(row, column);
    }
}

// All of a result, as bits.
struct Whole {
    u32 *c, n;
    template <typename Sum> __device__ __forceinline__ void operator()(u32 row, u32 column, Sum one, Sum two, u32) const
    {
        *(uint2 *)(c + (u64)row * n + column) = make_uint2(bits(one), bits(two));
    }
    __device__ __forceinline__ void close(u32, u32) const {}
};

#define GEMM(NAME, PRODUCT)                                                                                         \
    extern "C" __global__ void __launch_bounds__((WORKERS + 1) * 32, 1)                                             \
        NAME(u32 *c, const unsigned char *a, const unsigned char *b, u32 m, u32 n, u32 slices)                      \
    {                                                                                                               \
        Whole put = {c, n};                                                                                         \
        gemm<PRODUCT>(a, b, m, n, slices, slices, put);                                                                       \
    }

GEMM(wgmma_bf16, Bf16)
GEMM(wgmma_fp16, Fp16)
GEMM(wgmma_tf32, Tf32)
GEMM(wgmma_fp8, Fp8)
GEMM(wgmma_int8, Int8)

// What the tape asks for, from packed operands of whole tiles.
struct Some {
    float *c, *act;
    const float *bias;
    u32 m, n, add;
    __device__ __forceinline__ void operator()(u32 row, u32 column, float one, float two, u32 share) const
    {
        result(c, act, bias, m, n, add, share).put(row, column, one, two);
    }
    __device__ __forceinline__ void close(u32 row, u32 column) const
    {
        if (!act) return;
        Result to = {c, act, bias, m, n, add};
#pragma unroll 1
        for (u32 e = 0; e < COLUMNS / 2; e++) to.activate(row + e / 2 % 2 * 8, column + e / 4 * 8 + e % 2);
    }
};

extern "C" __global__ void __launch_bounds__((WORKERS + 1) * 32, 1)
    product_wgmma(float *c, float *act, const float *bias, const unsigned char *a, const unsigned char *b, u32 m, u32 n,
                  u32 slices, u32 per, u32 add)
{
    Some put = {c, act, bias, m, n, add};
    gemm<Bf16>(a, b, (m + 127) / 128 * 128, (n + COLUMNS - 1) / COLUMNS * COLUMNS, slices, per, put);
}
