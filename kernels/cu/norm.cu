// Normalisation of rows and of columns, and sums of columns. Sums over many rows are taken in two parts: blocks add some rows
// each, then the sums of the blocks are added in their order. How rows are shared out depends on the shape alone.
#include "common.cuh"
#include "math.cuh"

#define EPSILON 1e-5f

// A warp has a row.
extern "C" __global__ void __launch_bounds__(256)
    layer_norm(float *y, float *means, float *rs, const float *x, const float *scale, const float *shift, u32 rows, u32 columns)
{
    u32 row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    x += (u64)row * columns;
    y += (u64)row * columns;
    float sum = 0.0f, squares = 0.0f;
    for (u32 i = lane; i < columns; i += 32) sum += x[i];
    float mean = sum_of_warp(sum) / (float)columns;
    for (u32 i = lane; i < columns; i += 32) squares += (x[i] - mean) * (x[i] - mean);
    float r = 1.0f / sqrtf(sum_of_warp(squares) / (float)columns + EPSILON);
    for (u32 i = lane; i < columns; i += 32) y[i] = (x[i] - mean) * r * scale[i] + shift[i];
    if (lane == 0) {
        means[row] = mean;
        rs[row] = r;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    layer_norm_backward(float *dx, const float *x, const float *scale, const float *means, const float *rs, const float *dy,
                        u32 rows, u32 columns)
{
    u32 row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    u64 at = (u64)row * columns;
    x += at, dx += at, dy += at;
    float mean = means[row], r = rs[row], a = 0.0f, b = 0.0f;
    for (u32 i = lane; i < columns; i += 32) {
        float g = dy[i] * scale[i];
        a += g;
        b += g * (x[i] - mean) * r;
    }
    a = sum_of_warp(a) / (float)columns;
    b = sum_of_warp(b) / (float)columns;
    for (u32 i = lane; i < columns; i += 32) dx[i] = (dy[i] * scale[i] - a - (x[i] - mean) * r * b) * r;
}

// A block has 32 columns of `per` rows; its eight warps take rows in turn.
struct Share {
    u32 column, first, end, warp;
    bool mine;
};

__device__ __forceinline__ Share share(u32 rows, u32 columns, u32 per)
{
    Share s;
    s.warp = threadIdx.x / 32;
    s.column = blockIdx.x * 32 + threadIdx.x % 32;
    s.mine = s.column < columns;
    s.first = blockIdx.y * per + s.warp;
    s.end = min(rows, (blockIdx.y + 1) * per);
    return s;
}

// Adds what eight warps have for a column, in their order.
__device__ __forceinline__ void put(float *to, const Share &s, u32 columns, float sum, float *shared)
{
    u32 lane = threadIdx.x % 32;
    shared[s.warp * 32 + lane] = sum;
    __syncthreads();
    if (s.warp == 0 && s.mine) {
        float all = shared[lane];
        for (u32 w = 1; w < 8; w++) all += shared[w * 32 + lane];
        to[(u64)blockIdx.y * columns + s.column] = all;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256) column_sums(float *parts, const float *x, u32 rows, u32 columns, u32 per)
{
    __shared__ float shared[256];
    Share s = share(rows, columns, per);
    float sum = 0.0f;
    if (s.mine)
#pragma unroll 4
        for (u32 row = s.first; row < s.end; row += 8) sum += x[(u64)row * columns + s.column];
    put(parts, s, columns, sum, shared);
}

extern "C" __global__ void __launch_bounds__(256)
    column_squares(float *parts, const float *x, const float *means, u32 rows, u32 columns, u32 per)
{
    __shared__ float shared[256];
    Share s = share(rows, columns, per);
    float sum = 0.0f, mean = s.mine ? means[s.column] : 0.0f;
    if (s.mine)
#pragma unroll 4
        for (u32 row = s.first; row < s.end; row += 8) {
            float d = x[(u64)row * columns + s.column] - mean;
            sum += d * d;
        }
    put(parts, s, columns, sum, shared);
}

// Sums of dy * (x - mean) * r, then of dy. Mean and r are of rows (stride 1, 0) or of columns (0, 1).
extern "C" __global__ void __launch_bounds__(256)
    column_slopes(float *parts, const float *x, const float *means, const float *rs, const float *dy, u32 rows, u32 columns,
                  u32 per, u32 by_row)
{
    __shared__ float shared[256];
    Share s = share(rows, columns, per);
    float scale = 0.0f, shift = 0.0f;
    if (s.mine)
#pragma unroll 4
        for (u32 row = s.first; row < s.end; row += 8) {
            u64 at = (u64)row * columns + s.column;
            u32 of = by_row ? row : s.column;
            scale += dy[at] * (x[at] - means[of]) * rs[of];
            shift += dy[at];
        }
    put(parts, s, columns, scale, shared);
    put(parts + (u64)gridDim.y * columns, s, columns, shift, shared);
}

#define TOTAL(NAME, VALUE)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256) NAME(float *y, const float *parts, u32 count, u32 columns, float rows) \
    {                                                                                                                   \
        EACH(i, columns)                                                                                                \
        {                                                                                                               \
            float sum = 0.0f;                                                                                           \
            for (u32 part = 0; part < count; part++) sum += parts[(u64)part * columns + i];                             \
            y[i] = VALUE;                                                                                               \
        }                                                                                                               \
    }

TOTAL(column_total, sum)
TOTAL(column_mean, sum / rows)
TOTAL(column_r, 1.0f / sqrtf(sum / rows + EPSILON))

extern "C" __global__ void __launch_bounds__(256)
    batch_norm(float *y, const float *x, const float *means, const float *rs, const float *scale, const float *shift,
               u32 columns, u64 n)
{
    EACH(i, n)
    {
        u32 c = (u32)(i % columns);
        y[i] = (x[i] - means[c]) * rs[c] * scale[c] + shift[c];
    }
}

extern "C" __global__ void __launch_bounds__(256)
    batch_norm_backward(float *dx, const float *x, const float *scale, const float *means, const float *rs, const float *dy,
                        const float *d_scale, const float *d_shift, u32 columns, float rows, u64 n)
{
    EACH(i, n)
    {
        u32 c = (u32)(i % columns);
        float normal = (x[i] - means[c]) * rs[c];
        dx[i] = scale[c] * rs[c] * (dy[i] - (d_shift[c] + normal * d_scale[c]) / rows);
    }
}
