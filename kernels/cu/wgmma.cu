// The tensor cores of sm_90a at full rate: warpgroup products with both operands in shared memory.
// Cannot be simulated; its digest is held against other multiprocessors, not against a twin.
#include "common.cuh"

struct Share {
    u32 sm, digest;
    u64 cycles;
};

#define M 64
#define N 256
#define K 16
#define SLICES 4

// Matrix descriptor of an operand without swizzle: start, leading and stride offsets in units of 16 bytes.
__device__ __forceinline__ u64 describe(u32 address, u32 leading, u32 stride)
{
    return ((u64)(address & 0x3ffff) >> 4) | ((u64)(leading >> 4) << 16) | ((u64)(stride >> 4) << 32);
}

// c += A * B over one slice of 16: 128 sums per thread.
#define WGMMA(c, x, y)                                                                                  \
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" \
                 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
                 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
                 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
                 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
                 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
                 "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
                 "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
                 "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}, " \
                 "%128, %129, 1, 1, 1, 0, 0;" \
                 : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]), "+f"((c)[4]), "+f"((c)[5]), "+f"((c)[6]), "+f"((c)[7]), \
                   "+f"((c)[8]), "+f"((c)[9]), "+f"((c)[10]), "+f"((c)[11]), "+f"((c)[12]), "+f"((c)[13]), "+f"((c)[14]), "+f"((c)[15]), \
                   "+f"((c)[16]), "+f"((c)[17]), "+f"((c)[18]), "+f"((c)[19]), "+f"((c)[20]), "+f"((c)[21]), "+f"((c)[22]), "+f"((c)[23]), \
                   "+f"((c)[24]), "+f"((c)[25]), "+f"((c)[26]), "+f"((c)[27]), "+f"((c)[28]), "+f"((c)[29]), "+f"((c)[30]), "+f"((c)[31]), \
                   "+f"((c)[32]), "+f"((c)[33]), "+f"((c)[34]), "+f"((c)[35]), "+f"((c)[36]), "+f"((c)[37]), "+f"((c)[38]), "+f"((c)[39]), \
                   "+f"((c)[40]), "+f"((c)[41]), "+f"((c)[42]), "+f"((c)[43]), "+f"((c)[44]), "+f"((c)[45]), "+f"((c)[46]), "+f"((c)[47]), \
                   "+f"((c)[48]), "+f"((c)[49]), "+f"((c)[50]), "+f"((c)[51]), "+f"((c)[52]), "+f"((c)[53]), "+f"((c)[54]), "+f"((c)[55]), \
                   "+f"((c)[56]), "+f"((c)[57]), "+f"((c)[58]), "+f"((c)[59]), "+f"((c)[60]), "+f"((c)[61]), "+f"((c)[62]), "+f"((c)[63]), \
                   "+f"((c)[64]), "+f"((c)[65]), "+f"((c)[66]), "+f"((c)[67]), "+f"((c)[68]), "+f"((c)[69]), "+f"((c)[70]), "+f"((c)[71]), \
                   "+f"((c)[72]), "+f"((c)[73]), "+f"((c)[74]), "+f"((c)[75]), "+f"((c)[76]), "+f"((c)[77]), "+f"((c)[78]), "+f"((c)[79]), \
                   "+f"((c)[80]), "+f"((c)[81]), "+f"((c)[82]), "+f"((c)[83]), "+f"((c)[84]), "+f"((c)[85]), "+f"((c)[86]), "+f"((c)[87]), \
                   "+f"((c)[88]), "+f"((c)[89]), "+f"((c)[90]), "+f"((c)[91]), "+f"((c)[92]), "+f"((c)[93]), "+f"((c)[94]), "+f"((c)[95]), \
                   "+f"((c)[96]), "+f"((c)[97]), "+f"((c)[98]), "+f"((c)[99]), "+f"((c)[100]), "+f"((c)[101]), "+f"((c)[102]), "+f"((c)[103]), \
                   "+f"((c)[104]), "+f"((c)[105]), "+f"((c)[106]), "+f"((c)[107]), "+f"((c)[108]), "+f"((c)[109]), "+f"((c)[110]), "+f"((c)[111]), \
                   "+f"((c)[112]), "+f"((c)[113]), "+f"((c)[114]), "+f"((c)[115]), "+f"((c)[116]), "+f"((c)[117]), "+f"((c)[118]), "+f"((c)[119]), \
                   "+f"((c)[120]), "+f"((c)[121]), "+f"((c)[122]), "+f"((c)[123]), "+f"((c)[124]), "+f"((c)[125]), "+f"((c)[126]), "+f"((c)[127]) \
                 : "l"(x), "l"(y))

extern "C" __global__ void __launch_bounds__(256, 1) burn_wgmma(u32 seed, u32 rounds, Share *out)
{
    __shared__ __align__(128) u32 a[SLICES][M * K / 2], b[SLICES][N * K / 2];
    __shared__ u32 warps[8];
    for (u32 i = threadIdx.x; i < SLICES * M * K / 2; i += blockDim.x)
        (&a[0][0])[i] = (pattern(seed, i) & 0x80ff80ffu) | 0x3f003f00u;
    for (u32 i = threadIdx.x; i < SLICES * N * K / 2; i += blockDim.x)
        (&b[0][0])[i] = (pattern(~seed, i) & 0x80ff80ffu) | 0x3f003f00u;
    asm volatile("fence.proxy.async;" : : : "memory");
    __syncthreads();
    u64 begin = cycles();
    u32 digest = seed ^ threadIdx.x;
#pragma unroll 1
    for (u32 round = 0; round < rounds; round++) {
        float c[128];
#pragma unroll
        for (int i = 0; i < 128; i++) c[i] = 1.0f;
        asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#pragma unroll
        for (u32 s = 0; s < 4 * SLICES; s++) {
            u64 x = describe((u32)__cvta_generic_to_shared(a[(s + round) % SLICES]), 128, 256);
            u64 y = describe((u32)__cvta_generic_to_shared(b[s % SLICES]), 128, 256);
            WGMMA(c, x, y);
        }
        asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" : : : "memory");
#pragma unroll
        for (int i = 0; i < 128; i++) {
            asm volatile("" : "+f"(c[i]) : : "memory");
            digest = fold(digest, __float_as_uint(c[i]));
        }
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
