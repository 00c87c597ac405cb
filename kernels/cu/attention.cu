// Self-attention in tiles, so that no matrix of scores is ever in memory (Dao et al., "FlashAttention", 2022). What goes back
// is computed once by queries and once by keys, with no additions between blocks: the same bits every time. Queries, keys and
// values lie side by side, rows of 3 * heads * width. On tensor cores in bf16, and in f32 on the ordinary units.
#include "tensor.cuh"
#include "math.cuh"

typedef unsigned short u16;

// Queries or keys of a tile, and the most elements of a head; what is missing is zero.
#define SIDE 64
// bf16 of a row in shared memory: 16-byte rows of which eight meet all banks.
#define PITCH 72
#define THREADS 128
#define NOTHING -1e30f

__device__ __forceinline__ u32 pair(float low, float high)
{
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

__device__ __forceinline__ void turned(u32 (&r)[4], u32 from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
}

// Rounds up to 64 rows to shared memory.
__device__ __forceinline__ void load(u16 *to, const float *from, u32 pitch, u32 rows, u32 width)
{
#pragma unroll 4
    for (u32 at = threadIdx.x; at < SIDE * SIDE / 4; at += THREADS) {
        u32 row = at / 16, column = at % 16 * 4;
        float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (row < rows && column < width) x = *(const float4 *)(from + (u64)row * pitch + column);
        *(uint2 *)(to + row * PITCH + column) = make_uint2(pair(x.x, x.y), pair(x.z, x.w));
    }
}

typedef u32 Left[4][4];
typedef float Sums[8][4];

// Sixteen rows of this warp as the left operand.
__device__ __forceinline__ void rows_of(Left &left, const u16 *tile)
{
    u32 at = (u32)__cvta_generic_to_shared(tile), lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane % 16;
#pragma unroll
    for (u32 k = 0; k < 4; k++) four(left[k], at + (row * PITCH + k * 16 + lane / 16 * 8) * 2);
}

__device__ __forceinline__ void clear(Sums &sums)
{
#pragma unroll
    for (int j = 0; j < 8; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) sums[j][e] = 0.0f;
}

// Adds left * tile^T: columns are rows of the tile.
__device__ __forceinline__ void times_rows(Sums &sums, const Left &left, const u16 *tile)
{
    u32 at = (u32)__cvta_generic_to_shared(tile), lane = threadIdx.x % 32;
#pragma unroll
    for (u32 k = 0; k < 4; k++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 y[4];
            four(y, at + ((j * 16 + lane % 16) * PITCH + k * 16 + lane / 16 * 8) * 2);
            Bf16::add(sums[2 * j], left[k], y[0], y[2]);
            Bf16::add(sums[2 * j + 1], left[k], y[1], y[3]);
        }
}

// Adds left * tile: columns are columns of the tile.
__device__ __forceinline__ void times_columns(Sums &sums, const Left &left, const u16 *tile)
{
    u32 at = (u32)__cvta_generic_to_shared(tile), lane = threadIdx.x % 32;
#pragma unroll
    for (u32 k = 0; k < 4; k++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 y[4];
            turned(y, at + ((k * 16 + lane % 16) * PITCH + j * 16 + lane / 16 * 8) * 2);
            Bf16::add(sums[2 * j], left[k], y[0], y[1]);
            Bf16::add(sums[2 * j + 1], left[k], y[2], y[3]);
        }
}

// Sums as the left operand of the next product.
__device__ __forceinline__ void fold_in(Left &left, const Sums &s)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        left[k][0] = pair(s[2 * k][0], s[2 * k][1]);
        left[k][1] = pair(s[2 * k][2], s[2 * k][3]);
        left[k][2] = pair(s[2 * k + 1][0], s[2 * k + 1][1]);
        left[k][3] = pair(s[2 * k + 1][2], s[2 * k + 1][3]);
    }
}

// Row and column within a tile of element `e` of eight columns number `j`.
__device__ __forceinline__ u32 row_at(u32 e) { return threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + e / 2 * 8; }
__device__ __forceinline__ u32 column_at(u32 j, u32 e) { return j * 8 + threadIdx.x % 4 * 2 + e % 2; }

__device__ __forceinline__ void store(float *to, const Sums &s, u32 pitch, u32 rows, u32 width, float first, float second)
{
#pragma unroll
    for (u32 j = 0; j < 8; j++)
#pragma unroll
        for (u32 e = 0; e < 4; e++) {
            u32 row = row_at(e), column = column_at(j, e);
            if (row < rows && column < width) to[(u64)row * pitch + column] = s[j][e] * (e < 2 ? first : second);
        }
}

// A head of a sequence, blockIdx.y of them; a tile of it is blockIdx.x.
#define SHAPE u32 seq, u32 heads, u32 width, u32 causal, float scale
#define PLACE                                                                                                           \
    u32 row = heads * width, pitch = 3 * row, first = blockIdx.x * SIDE;                                                \
    u64 begin = (u64)(blockIdx.y / heads) * seq, column = blockIdx.y % heads * width, line = (u64)blockIdx.y * seq;     \
    const float *base = qkv + begin * pitch + column

extern "C" __global__ void __launch_bounds__(THREADS) attention(float *out, float *log, const float *qkv, SHAPE)
{
    __shared__ __align__(16) u16 queries[SIDE * PITCH], keys[SIDE * PITCH], values[SIDE * PITCH];
    PLACE;
    load(queries, base + (u64)first * pitch, pitch, seq - first, width);
    __syncthreads();
    Left q, p;
    rows_of(q, queries);
    Sums o;
    clear(o);
    float most[2] = {NOTHING, NOTHING}, total[2] = {0.0f, 0.0f};
    u32 end = causal ? min(seq, first + SIDE) : seq;
#pragma unroll 1
    for (u32 key = 0; key < end; key += SIDE) {
        __syncthreads();
        load(keys, base + row + (u64)key * pitch, pitch, seq - key, width);
        load(values, base + 2 * row + (u64)key * pitch, pitch, seq - key, width);
        __syncthreads();
        Sums s;
        clear(s);
        times_rows(s, q, keys);
        float now[2] = {most[0], most[1]};
#pragma unroll
        for (u32 j = 0; j < 8; j++)
#pragma unroll
            for (u32 e = 0; e < 4; e++) {
                u32 other = key + column_at(j, e);
                bool seen = other < seq && !(causal && other > first + row_at(e));
                s[j][e] = seen ? s[j][e] * scale : NOTHING;
                now[e / 2] = fmaxf(now[e / 2], s[j][e]);
            }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            now[h] = fmaxf(now[h], __shfl_xor_sync(ALL_LANES, now[h], 1));
            now[h] = fmaxf(now[h], __shfl_xor_sync(ALL_LANES, now[h], 2));
            float shrink = exponential(most[h] - now[h]);
            most[h] = now[h];
            total[h] *= shrink;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                o[j][2 * h] *= shrink;
                o[j][2 * h + 1] *= shrink;
            }
        }
#pragma unroll
        for (u32 j = 0; j < 8; j++)
#pragma unroll
            for (u32 e = 0; e < 4; e++) {
                s[j][e] = exponential(s[j][e] - most[e / 2]);
                total[e / 2] += s[j][e];
            }
        fold_in(p, s);
        times_columns(o, p, values);
    }
#pragma unroll
    for (int h = 0; h < 2; h++) {
        total[h] += __shfl_xor_sync(ALL_LANES, total[h], 1);
        total[h] += __shfl_xor_sync(ALL_LANES, total[h], 2);
        u32 at = first + row_at(2 * h);
        if (at < seq && threadIdx.x % 4 == 0) log[line + at] = most[h] + logarithm(total[h]);
    }
    store(out + (begin + first) * row + column, o, row, seq - first, width, 1.0f / total[0], 1.0f / total[1]);
}

// Scalar product of each token's result and its gradient, head by head. A warp has a token and head.
extern "C" __global__ void __launch_bounds__(256)
    attention_inner(float *inner, const float *out, const float *gradient, u32 seq, u32 heads, u32 width, u32 count)
{
    u32 number = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (number >= count) return;
    u32 head = number / seq % heads;
    u64 at = ((u64)(number / seq / heads) * seq + number % seq) * heads * width + (u64)head * width;
    float sum = 0.0f;
    for (u32 i = lane; i < width; i += 32) sum += out[at + i] * gradient[at + i];
    sum = sum_of_warp(sum);
    if (lane == 0) inner[number] = sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_queries(float *d_qkv, const float *qkv, const float *log, const float *inner, const float *gradient, SHAPE)
{
    __shared__ __align__(16) u16 mine[SIDE * PITCH], keys[SIDE * PITCH], values[SIDE * PITCH];
    PLACE;
    Left q, g, d;
    load(mine, base + (u64)first * pitch, pitch, seq - first, width);
    load(keys, gradient + (begin + first) * row + column, row, seq - first, width);
    __syncthreads();
    rows_of(q, mine);
    rows_of(g, keys);
    float logs[2], inners[2];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        u32 at = min(first + row_at(2 * h), seq - 1);
        logs[h] = log[line + at];
        inners[h] = inner[line + at];
    }
    Sums dq;
    clear(dq);
    u32 end = causal ? min(seq, first + SIDE) : seq;
#pragma unroll 1
    for (u32 key = 0; key < end; key += SIDE) {
        __syncthreads();
        load(keys, base + row + (u64)key * pitch, pitch, seq - key, width);
        load(values, base + 2 * row + (u64)key * pitch, pitch, seq - key, width);
        __syncthreads();
        Sums s, dp;
        clear(s);
        clear(dp);
        times_rows(s, q, keys);
        times_rows(dp, g, values);
#pragma unroll
        for (u32 j = 0; j < 8; j++)
#pragma unroll
            for (u32 e = 0; e < 4; e++) {
                u32 other = key + column_at(j, e);
                bool seen = other < seq && !(causal && other > first + row_at(e));
                float p = exponential(s[j][e] * scale - logs[e / 2]);
                s[j][e] = seen ? p * (dp[j][e] - inners[e / 2]) * scale : 0.0f;
            }
        fold_in(d, s);
        times_columns(dq, d, keys);
    }
    store(d_qkv + (begin + first) * pitch + column, dq, pitch, seq - first, width, 1.0f, 1.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_keys(float *d_qkv, const float *qkv, const float *log, const float *inner, const float *gradient, SHAPE)
{
    __shared__ __align__(16) u16 queries[SIDE * PITCH], gradients[SIDE * PITCH];
    __shared__ float logs[SIDE], inners[SIDE];
    PLACE;
    Left k, v, left;
    load(queries, base + row + (u64)first * pitch, pitch, seq - first, width);
    load(gradients, base + 2 * row + (u64)first * pitch, pitch, seq - first, width);
    __syncthreads();
    rows_of(k, queries);
    rows_of(v, gradients);
    Sums dk, dv;
    clear(dk);
    clear(dv);
#pragma unroll 1
    for (u32 query = causal ? first : 0; query < seq; query += SIDE) {
        __syncthreads();
        load(queries, base + (u64)query * pitch, pitch, seq - query, width);
        load(gradients, gradient + (begin + query) * row + column, row, seq - query, width);
        if (threadIdx.x < SIDE) {
            u32 at = min(query + threadIdx.x, seq - 1);
            logs[threadIdx.x] = log[line + at];
            inners[threadIdx.x] = inner[line + at];
        }
        __syncthreads();
        Sums s, dp;
        clear(s);
        clear(dp);
        times_rows(s, k, queries);
        times_rows(dp, v, gradients);
#pragma unroll
        for (u32 j = 0; j < 8; j++)
#pragma unroll
            for (u32 e = 0; e < 4; e++) {
                u32 other = column_at(j, e);
                bool seen = query + other < seq && !(causal && first + row_at(e) > query + other);
                s[j][e] = seen ? exponential(s[j][e] * scale - logs[other]) : 0.0f;
                dp[j][e] = s[j][e] * (dp[j][e] - inners[other]) * scale;
            }
        fold_in(left, s);
        times_columns(dv, left, gradients);
        fold_in(left, dp);
        times_columns(dk, left, queries);
    }
    float *to = d_qkv + (begin + first) * pitch + column;
    store(to + row, dk, pitch, seq - first, width, 1.0f, 1.0f);
    store(to + 2 * row, dv, pitch, seq - first, width, 1.0f, 1.0f);
}

// In f32 a warp has a token of a head, and each lane looks at another one; lanes then hold elements `lane` and `lane + 32`.
#define TOKEN                                                                                                           \
    u32 number = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;                                 \
    if (number >= count) return;                                                                                        \
    u32 token = number % seq, row = heads * width, pitch = 3 * row;                                                     \
    u64 begin = (u64)(number / seq / heads) * seq, column = number / seq % heads * width;                               \
    const float *base = qkv + begin * pitch + column

__device__ __forceinline__ float dot(const float *a, const float *b, u32 width)
{
    float sum = 0.0f;
    for (u32 i = 0; i < width; i++) sum += a[i] * b[i];
    return sum;
}

struct Two {
    float low, high;

    // Adds `factor` times a row, of which this lane has two elements.
    __device__ __forceinline__ void add(float factor, const float *from, u32 width)
    {
        u32 lane = threadIdx.x % 32;
        if (lane < width) low += factor * from[lane];
        if (lane + 32 < width) high += factor * from[lane + 32];
    }

    __device__ __forceinline__ void put(float *to, u32 width, float factor) const
    {
        u32 lane = threadIdx.x % 32;
        if (lane < width) to[lane] = low * factor;
        if (lane + 32 < width) to[lane + 32] = high * factor;
    }
};

extern "C" __global__ void __launch_bounds__(256) attention_f32(float *out, float *log, const float *qkv, SHAPE, u32 count)
{
    TOKEN;
    const float *mine = base + (u64)token * pitch;
    Two o = {0.0f, 0.0f};
    float most = NOTHING, total = 0.0f;
    u32 seen = causal ? token + 1 : seq;
    for (u32 key = 0; key < seen; key += 32) {
        bool some = key + lane < seen;
        float s = some ? dot(mine, base + row + (u64)(key + lane) * pitch, width) * scale : NOTHING;
        float now = fmaxf(most, most_of_warp(s)), shrink = exponential(most - now);
        float p = some ? exponential(s - now) : 0.0f;
        most = now;
        total = total * shrink + sum_of_warp(p);
        o.low *= shrink;
        o.high *= shrink;
        for (u32 l = 0; l < 32 && key + l < seen; l++)
            o.add(__shfl_sync(ALL_LANES, p, l), base + 2 * row + (u64)(key + l) * pitch, width);
    }
    o.put(out + (begin + token) * row + column, width, 1.0f / total);
    if (lane == 0) log[number] = most + logarithm(total);
}

extern "C" __global__ void __launch_bounds__(256)
    attention_queries_f32(float *d_qkv, const float *qkv, const float *log, const float *inner, const float *gradient, SHAPE, u32 count)
{
    TOKEN;
    const float *mine = base + (u64)token * pitch, *g = gradient + (begin + token) * row + column;
    Two dq = {0.0f, 0.0f};
    u32 seen = causal ? token + 1 : seq;
    for (u32 key = 0; key < seen; key += 32) {
        float d = 0.0f;
        if (key + lane < seen) {
            const float *other = base + row + (u64)(key + lane) * pitch;
            float p = exponential(dot(mine, other, width) * scale - log[number]);
            d = p * (dot(g, other + row, width) - inner[number]) * scale;
        }
        for (u32 l = 0; l < 32 && key + l < seen; l++)
            dq.add(__shfl_sync(ALL_LANES, d, l), base + row + (u64)(key + l) * pitch, width);
    }
    dq.put(d_qkv + (begin + token) * pitch + column, width, 1.0f);
}

extern "C" __global__ void __launch_bounds__(256)
    attention_keys_f32(float *d_qkv, const float *qkv, const float *log, const float *inner, const float *gradient, SHAPE, u32 count)
{
    TOKEN;
    const float *mine = base + row + (u64)token * pitch;
    u64 line = number - token;
    Two dk = {0.0f, 0.0f}, dv = {0.0f, 0.0f};
    for (u32 query = causal ? token : 0; query < seq; query += 32) {
        float p = 0.0f, d = 0.0f;
        if (query + lane < seq) {
            u32 other = query + lane;
            const float *q = base + (u64)other * pitch, *g = gradient + (begin + other) * row + column;
            p = exponential(dot(q, mine, width) * scale - log[line + other]);
            d = p * (dot(g, mine + row, width) - inner[line + other]) * scale;
        }
        for (u32 l = 0; l < 32 && query + l < seq; l++) {
            dv.add(__shfl_sync(ALL_LANES, p, l), gradient + (begin + query + l) * row + column, width);
            dk.add(__shfl_sync(ALL_LANES, d, l), base + (u64)(query + l) * pitch, width);
        }
    }
    float *to = d_qkv + (begin + token) * pitch + column;
    dk.put(to + row, width, 1.0f);
    dv.put(to + 2 * row, width, 1.0f);
}
