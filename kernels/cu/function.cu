// Single calls of a linear-algebra and a convolution library, of any shape: products in batches, real, half and complex, and
// convolutions as products whose right operand is gathered from images while it is fetched. Tiles of 64 x 64 with 256 threads;
// the next slice along k is fetched while this one is used. Where a result has few tiles the sums are shared out along k and
// added in the order of the shares, which depends on the shape alone: every GPU gives the same bits.
#include "tensor.cuh"
#include "math.cuh"

typedef unsigned short u16;

#define SIDE 64
// Elements along k of a slice: of ordinary units, of tensor cores (64 bytes).
#define DEEP 16
#define SLICE 32

__device__ __forceinline__ float wide(u16 x)
{
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
    return r;
}

__device__ __forceinline__ void narrow(u16 &to, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to) : "f"(x)); }
__device__ __forceinline__ void narrow(float &to, float x) { to = x; }
__device__ __forceinline__ float wide(float x) { return x; }

template <typename T> __device__ __forceinline__ T nothing() { return 0; }
template <> __device__ __forceinline__ float2 nothing<float2>() { return make_float2(0.0f, 0.0f); }

__device__ __forceinline__ void accumulate(float &sum, float x, float y) { sum += x * y; }
__device__ __forceinline__ void accumulate(float2 &sum, float2 x, float2 y)
{
    sum.x += x.x * y.x;
    sum.x -= x.y * y.y;
    sum.y += x.x * y.y;
    sum.y += x.y * y.x;
}

// An operand as it lies: `rows` x `deep`, or (`across`) deep x rows. Elements that there are not are zero.
template <typename T> struct Matrix {
    const T *at;
    u32 rows, deep, across;

    __device__ __forceinline__ T operator()(u32 row, u32 k) const
    {
        return row < rows && k < deep ? at[across ? (u64)k * rows + row : (u64)row * deep + k] : nothing<T>();
    }
};

// Images as N x channels x edge x edge. A window of size x size pixels lies around each pixel; outside of an image is zero.
struct Geometry {
    u32 images, edge, size, channels;
};

// What window element `tap` (channel and place in the window) of a pixel falls on; `back`: of which pixel it is that element.
template <typename T, bool BACK> struct Windows {
    const T *at;
    Geometry g;

    __device__ __forceinline__ T of(u32 pixel, u32 tap) const
    {
        u32 area = g.edge * g.edge, taps = g.size * g.size, half = g.size / 2;
        u32 image = pixel / area, place = pixel - image * area, y = place / g.edge, x = place - y * g.edge;
        u32 channel = tap / taps, within = tap - channel * taps, down = within / g.size, right = within - down * g.size;
        // Below zero wraps round to more than any edge.
        y = BACK ? y + half - down : y + down - half;
        x = BACK ? x + half - right : x + right - half;
        bool inside = image < g.images && channel < g.channels && y < g.edge && x < g.edge;
        return inside ? at[(((u64)image * g.channels + channel) * g.edge + y) * g.edge + x] : nothing<T>();
    }
};

// The windows as the right operand, pixels as columns.
template <typename T, bool BACK> struct Gathered {
    Windows<T, BACK> windows;
    static const u32 across = 1;

    __device__ __forceinline__ T operator()(u32 column, u32 k) const { return windows.of(column, k); }
};

// The same with pixels along k.
template <typename T> struct Summed {
    Windows<T, false> windows;
    static const u32 across = 0;

    __device__ __forceinline__ T operator()(u32 column, u32 k) const { return windows.of(k, column); }
};

// A filter, out x in x size x size, by input channels, for what goes back: k is output channel and place in the window.
template <typename T> struct Turned {
    const T *at;
    u32 in, out, taps;
    static const u32 across = 0;

    __device__ __forceinline__ T operator()(u32 row, u32 k) const
    {
        u32 channel = k / taps, tap = k - channel * taps;
        return row < in && channel < out ? at[((u64)channel * in + row) * taps + tap] : nothing<T>();
    }
};

// Gradients of the images that came out, by channels, pixels along k.
template <typename T> struct Channels {
    const T *at;
    Geometry g;
    static const u32 across = 0;

    __device__ __forceinline__ T operator()(u32 row, u32 k) const
    {
        u32 area = g.edge * g.edge, image = k / area;
        return row < g.channels && image < g.images ? at[((u64)image * g.channels + row) * area + k % area] : nothing<T>();
    }
};

// Where this thread's element number `l` of a slice lies: next to each other along k, or along rows.
template <u32 LONG> __device__ __forceinline__ u32 row_of(u32 l, u32 across)
{
    u32 at = threadIdx.x + l * 256;
    return across ? at % SIDE : at / LONG;
}

template <u32 LONG> __device__ __forceinline__ u32 deep_of(u32 l, u32 across)
{
    u32 at = threadIdx.x + l * 256;
    return across ? at / SIDE : at % LONG;
}

// Sums of a tile on the ordinary units.
template <typename T, typename Left, typename Right>
__device__ __forceinline__ void plain(T (&sum)[4][4], const Left &a, const Right &b, u32 row0, u32 column0, u32 first, u32 end)
{
    const u32 LOADS = SIDE * DEEP / 256;
    __shared__ T left[2][DEEP][SIDE + 4], right[2][DEEP][SIDE + 4];
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    T next_a[LOADS], next_b[LOADS];
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] = nothing<T>();
    u32 slices = (end - first + DEEP - 1) / DEEP;
#pragma unroll 1
    for (u32 s = 0; s <= slices; s++) {
        if (s < slices) {
            u32 base = first + s * DEEP;
#pragma unroll
            for (u32 l = 0; l < LOADS; l++) {
                next_a[l] = a(row0 + row_of<DEEP>(l, a.across), base + deep_of<DEEP>(l, a.across));
                next_b[l] = b(column0 + row_of<DEEP>(l, b.across), base + deep_of<DEEP>(l, b.across));
            }
        }
        if (s > 0) {
            u32 now = (s - 1) & 1;
#pragma unroll
            for (u32 d = 0; d < DEEP; d++) {
                T x[4], y[4];
#pragma unroll
                for (u32 i = 0; i < 4; i++) x[i] = left[now][d][ty * 4 + i];
#pragma unroll
                for (u32 j = 0; j < 4; j++) y[j] = right[now][d][tx + j * 16];
#pragma unroll
                for (int i = 0; i < 4; i++)
#pragma unroll
                    for (int j = 0; j < 4; j++) accumulate(sum[i][j], x[i], y[j]);
            }
        }
        if (s < slices) {
#pragma unroll
            for (u32 l = 0; l < LOADS; l++) {
                left[s & 1][deep_of<DEEP>(l, a.across)][row_of<DEEP>(l, a.across)] = next_a[l];
                right[s & 1][deep_of<DEEP>(l, b.across)][row_of<DEEP>(l, b.across)] = next_b[l];
            }
        }
        __syncthreads();
    }
}

// A half-precision number's place in a tile of rows of 64 bytes.
__device__ __forceinline__ void keep(unsigned char *tile, u32 row, u32 k, u16 value)
{
    *(u16 *)(tile + place(row, k / 8) + k % 8 * 2) = value;
}

// Sums of a tile on tensor cores; a warp has 32 rows and 16 columns.
template <typename Left, typename Right>
__device__ __forceinline__ void tensor(float (&sum)[2][2][4], const Left &a, const Right &b, u32 row0, u32 column0, u32 first,
                                       u32 end)
{
    const u32 LOADS = SIDE * SLICE / 256;
    __shared__ __align__(128) unsigned char left[2][SIDE * ROW], right[2][SIDE * ROW];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, down = warp % 2 * 32, across = warp / 2 * 16;
    u16 next_a[LOADS], next_b[LOADS];
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0.0f;
    u32 slices = (end - first + SLICE - 1) / SLICE;
#pragma unroll 1
    for (u32 s = 0; s <= slices; s++) {
        if (s < slices) {
            u32 base = first + s * SLICE;
#pragma unroll
            for (u32 l = 0; l < LOADS; l++) {
                next_a[l] = a(row0 + row_of<SLICE>(l, a.across), base + deep_of<SLICE>(l, a.across));
                next_b[l] = b(column0 + row_of<SLICE>(l, b.across), base + deep_of<SLICE>(l, b.across));
            }
        }
        if (s > 0) {
            u32 from_a = (u32)__cvta_generic_to_shared(left[(s - 1) & 1]);
            u32 from_b = (u32)__cvta_generic_to_shared(right[(s - 1) & 1]);
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 x[2][4], y[4], piece = half * 2 + lane / 16;
#pragma unroll
                for (u32 i = 0; i < 2; i++) four(x[i], from_a + place(down + i * 16 + lane % 16, piece));
                four(y, from_b + place(across + lane % 16, piece));
#pragma unroll
                for (u32 i = 0; i < 2; i++)
#pragma unroll
                    for (u32 j = 0; j < 2; j++) Fp16::add(sum[i][j], x[i], y[j], y[j + 2]);
            }
        }
        if (s < slices) {
#pragma unroll
            for (u32 l = 0; l < LOADS; l++) {
                keep(left[s & 1], row_of<SLICE>(l, a.across), deep_of<SLICE>(l, a.across), next_a[l]);
                keep(right[s & 1], row_of<SLICE>(l, b.across), deep_of<SLICE>(l, b.across), next_b[l]);
            }
        }
        __syncthreads();
    }
}

// Where a result goes: alpha times the sum plus beta times what is there, or a share's sum for `function_sum`.
template <typename T> struct Target {
    T *c;
    float *parts;
    float alpha, beta;

    __device__ __forceinline__ void put(u64 at, float sum) const
    {
        if (parts) {
            parts[at] = sum;
            return;
        }
        // What is there may be no number as long as nobody asked for it.
        float value = alpha * sum;
        if (beta != 0.0f) value += beta * wide(c[at]);
        narrow(c[at], value);
    }
};

template <> struct Target<float2> {
    float2 *c;
    float *parts;
    float alpha, beta;

    __device__ __forceinline__ void put(u64 at, float2 sum) const
    {
        float2 value = make_float2(alpha * sum.x, alpha * sum.y);
        if (beta != 0.0f) value = make_float2(value.x + beta * c[at].x, value.y + beta * c[at].y);
        c[at] = value;
    }
};

// Row-major.
struct Rows {
    u32 rows, columns;

    __device__ __forceinline__ u64 at(u32 row, u32 column) const { return (u64)row * columns + column; }
};

// Channels of images: a column is a pixel.
struct Planes {
    u32 rows, columns, area;

    __device__ __forceinline__ u64 at(u32 row, u32 column) const
    {
        u32 image = column / area;
        return ((u64)image * rows + row) * area + column % area;
    }
};

template <typename T, typename Sum, typename Left, typename Right, typename Place>
__device__ __forceinline__ void on_units(const Target<T> &to, const Left &a, const Right &b, const Place &where, u32 tile,
                                         u32 first, u32 end)
{
    Sum sum[4][4];
    plain<Sum>(sum, a, b, tile * SIDE, blockIdx.x * SIDE, first, end);
    u32 tx = threadIdx.x % 16, ty = threadIdx.x / 16;
#pragma unroll
    for (u32 i = 0; i < 4; i++)
#pragma unroll
        for (u32 j = 0; j < 4; j++) {
            u32 row = tile * SIDE + ty * 4 + i, column = blockIdx.x * SIDE + tx + j * 16;
            if (row < where.rows && column < where.columns) to.put(where.at(row, column), sum[i][j]);
        }
}

template <typename Left, typename Right, typename Place>
__device__ __forceinline__ void on_tensor_cores(const Target<u16> &to, const Left &a, const Right &b, const Place &where, u32 tile,
                                                u32 first, u32 end)
{
    float sum[2][2][4];
    tensor(sum, a, b, tile * SIDE, blockIdx.x * SIDE, first, end);
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 i = 0; i < 2; i++)
#pragma unroll
        for (u32 j = 0; j < 2; j++)
#pragma unroll
            for (u32 e = 0; e < 4; e++) {
                u32 row = tile * SIDE + warp % 2 * 32 + i * 16 + lane / 4 + e / 2 * 8;
                u32 column = blockIdx.x * SIDE + warp / 2 * 16 + j * 8 + lane % 4 * 2 + e % 2;
                if (row < where.rows && column < where.columns) to.put(where.at(row, column), sum[i][j][e]);
            }
}

template <typename T, typename Left, typename Right, typename Place>
__device__ __forceinline__ void tile_of(const Target<T> &to, const Left &a, const Right &b, const Place &where, u32 tile, u32 first,
                                        u32 end)
{
    on_units<T, T>(to, a, b, where, tile, first, end);
}

template <typename Left, typename Right, typename Place>
__device__ __forceinline__ void tile_of(const Target<u16> &to, const Left &a, const Right &b, const Place &where, u32 tile,
                                        u32 first, u32 end)
{
    on_tensor_cores(to, a, b, where, tile, first, end);
}

// C = alpha * A * B + beta * C of each of a batch, C row-major m x n; `per` elements along k are a share. Blocks in y are tiles
// down, then shares, then the batch.
#define PRODUCTS(NAME, T)                                                                                                 \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                                \
        NAME(T *c, float *parts, const T *a, const T *b, u32 m, u32 n, u32 k, u32 a_across, u32 b_across, u32 down,     \
             u32 shares, u32 per, float alpha, float beta)                                                              \
    {                                                                                                                   \
        u32 tile = blockIdx.y % down, rest = blockIdx.y / down, share = rest % shares, batch = rest / shares;           \
        u64 size = (u64)m * n, batches = gridDim.y / down / shares;                                                     \
        Target<T> to = {c + batch * size, parts ? parts + (share * batches + batch) * size : 0, alpha, beta};           \
        Matrix<T> left = {a + (u64)batch * m * k, m, k, a_across}, right = {b + (u64)batch * n * k, n, k, b_across};    \
        Rows where = {m, n};                                                                                            \
        tile_of(to, left, right, where, tile, share *per, min(k, share *per + per));                                    \
    }

PRODUCTS(batch_f32, float)
PRODUCTS(batch_half, u16)
PRODUCTS(batch_c32, float2)

#define CONVOLUTION(NAME, T)                                                                                              \
    extern "C" __global__ void __launch_bounds__(256, 2)                                                                \
        NAME(T *c, float *parts, const T *a, const T *b, u32 images, u32 edge, u32 size, u32 in, u32 out, u32 down,     \
             u32 per)

#define SHARE                                                                                                             \
    u32 tile = blockIdx.y % down, share = blockIdx.y / down, area = edge * edge, taps = size * size;                    \
    u32 first = share * per, end = first + per

// `a` is the filter, `b` the images that go in, `c` those that come out.
#define FORWARD(NAME, T)                                                                                                  \
    CONVOLUTION(NAME, T)                                                                                                \
    {                                                                                                                   \
        SHARE;                                                                                                          \
        Target<T> to = {c, parts ? parts + (u64)share * images * out * area : 0, 1.0f, 0.0f};                           \
        Matrix<T> left = {a, out, in * taps, 0};                                                                        \
        Gathered<T, false> right = {{b, {images, edge, size, in}}};                                                     \
        Planes where = {out, images * area, area};                                                                      \
        tile_of(to, left, right, where, tile, first, min(in * taps, end));                                              \
    }

// `a` is the filter, `b` the gradient of what came out, `c` that of what went in.
#define BACKWARD_DATA(NAME, T)                                                                                            \
    CONVOLUTION(NAME, T)                                                                                                \
    {                                                                                                                   \
        SHARE;                                                                                                          \
        Target<T> to = {c, parts ? parts + (u64)share * images * in * area : 0, 1.0f, 0.0f};                            \
        Turned<T> left = {a, in, out, taps};                                                                            \
        Gathered<T, true> right = {{b, {images, edge, size, out}}};                                                     \
        Planes where = {in, images * area, area};                                                                       \
        tile_of(to, left, right, where, tile, first, min(out * taps, end));                                             \
    }

// `a` is the gradient of what came out, `b` what went in, `c` the gradient of the filter.
#define BACKWARD_FILTER(NAME, T)                                                                                          \
    CONVOLUTION(NAME, T)                                                                                                \
    {                                                                                                                   \
        SHARE;                                                                                                          \
        Target<T> to = {c, parts ? parts + (u64)share * out * in * taps : 0, 1.0f, 0.0f};                               \
        Channels<T> left = {a, {images, edge, size, out}};                                                              \
        Summed<T> right = {{b, {images, edge, size, in}}};                                                              \
        Rows where = {out, in * taps};                                                                                  \
        tile_of(to, left, right, where, tile, first, min(images * area, end));                                          \
    }

FORWARD(convolve_f32, float)
FORWARD(convolve_half, u16)
BACKWARD_DATA(convolve_data_f32, float)
BACKWARD_DATA(convolve_data_half, u16)
BACKWARD_FILTER(convolve_filter_f32, float)
BACKWARD_FILTER(convolve_filter_half, u16)

// Adds the shares of a result in their order.
template <typename T>
__device__ __forceinline__ void add_shares(const Target<T> &to, const float *parts, u64 size, u32 shares)
{
    EACH(i, size)
    {
        float sum = 0.0f;
        for (u32 share = 0; share < shares; share++) sum += parts[share * size + i];
        to.put(i, sum);
    }
}

#define SUM(NAME, T)                                                                                                      \
    extern "C" __global__ void __launch_bounds__(256)                                                                   \
        NAME(T *c, const float *parts, u64 size, u32 shares, float alpha, float beta)                                   \
    {                                                                                                                   \
        Target<T> to = {c, 0, alpha, beta};                                                                             \
        add_shares(to, parts, size, shares);                                                                            \
    }

SUM(shares_f32, float)
SUM(shares_half, u16)
