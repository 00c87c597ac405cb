// Convolutions of a training step as products whose windows nobody writes: elements of images are gathered while a product goes
// through them. Images lie as N x H x W x C, filters as size x size x in x out, channels are multiples of 8. A gradient of images is
// a convolution as well, with the filter turned round, where windows lie one pixel apart.
#include "tile.cuh"

// Images that windows of `size` x `size` pixels lie over, `out` x `out` of them on each.
struct Geometry {
    u32 edge, channels, size, stride, pad, out;
};

#define GEOMETRY u32 edge, u32 channels, u32 size, u32 stride, u32 pad, u32 out
#define GEOMETRY_OF {edge, channels, size, stride, pad, out}

// Where the result of a convolution goes: an even number of channels, with nothing to be added but a bias.
struct Pixels {
    float *c;
    const float *bias;
    u32 m, n;

    __device__ __forceinline__ void put(u32 row, u32 column, float value) const
    {
        c[(u64)row * n + column] = bias ? value + bias[column] : value;
    }
    __device__ __forceinline__ void put(u32 row, u32 column, float one, float two) const
    {
        if (row >= m || column >= n) return;
        float2 more = bias ? *(const float2 *)(bias + column) : make_float2(0.0f, 0.0f);
        *(float2 *)(c + (u64)row * n + column) = make_float2(one + more.x, two + more.y);
    }
    __device__ __forceinline__ bool activates() const { return false; }
    __device__ __forceinline__ void activate(u32, u32) const {}
};

// Of several shares of the sums each goes to a place of its own, where they wait for `product_sum`.
__device__ __forceinline__ Pixels pixels(float *c, const float *bias, u32 m, u32 n, u32 share)
{
    return {c + (u64)share * m * n, bias, m, n};
}

// Rounds eight numbers each.
extern "C" __global__ void __launch_bounds__(256) round_bf16(uint4 *to, const float4 *from, u64 n)
{
    EACH(i, n)
    {
        float4 a = from[2 * i], b = from[2 * i + 1];
        float x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        u32 pair[4];
#pragma unroll
        for (u32 j = 0; j < 4; j++) pair[j] = rounded(x[2 * j]) | (u32)rounded(x[2 * j + 1]) << 16;
        to[i] = make_uint4(pair[0], pair[1], pair[2], pair[3]);
    }
}

// A place along k of windows: element of the window and channel.
struct Tap {
    u32 channel, y, x;

    __device__ __forceinline__ void go(u32 elements, const Geometry &g)
    {
        channel += elements;
        while (channel >= g.channels) {
            channel -= g.channels;
            if (++x == g.size) x = 0, y++;
        }
    }
};

__device__ __forceinline__ Tap tap(u32 k, const Geometry &g)
{
    u32 number = k / g.channels;
    return {k - number * g.channels, number / g.size, number % g.size};
}

// First pixel of a window, and where its image begins. Below zero wraps round to more than any edge.
struct Corner {
    u32 image, y, x;

    // Where the element lies that `tap` falls on; false outside of the image.
    __device__ __forceinline__ bool find(u32 &at, const Tap &tap, const Geometry &g) const
    {
        u32 row = y + tap.y, column = x + tap.x;
        at = (image + row * g.edge + column) * g.channels + tap.channel;
        return row < g.edge && column < g.edge && tap.y < g.size;
    }
};

__device__ __forceinline__ Corner corner(u32 image, u32 down, u32 right, const Geometry &g)
{
    return {image * g.edge * g.edge, down * g.stride - g.pad, right * g.stride - g.pad};
}

// Of window number `window`; none where there are fewer.
__device__ __forceinline__ Corner corner(u32 window, u32 windows, const Geometry &g)
{
    u32 row = window / g.out;
    Corner at = corner(row / g.out, row % g.out, window - row * g.out, g);
    if (window >= windows) at.y = 1u << 30;
    return at;
}

// Windows as rows of the left operand, a packed filter on the right.
struct Windows {
    const unsigned char *images, *filter;
    Geometry g;
    u32 pitch;
    Corner corners[2];
    Tap at;
    static const bool ACROSS = false;

    __device__ __forceinline__ void operator()(u32 base, u32 tile)
    {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 row = threadIdx.x / 4 + half * 64, piece = threadIdx.x % 4, from;
            bool some = corners[half].find(from, at, g);
            fetch(base + place(row, piece), images + (some ? (u64)from * 2 : 0), some);
            fetch(base + STAGE_BYTES + place(row, piece), filter + (u64)row * pitch + tile * ROW + piece * 16);
        }
        at.go(ROW / 2, g);
    }
};

// Blocks in y are tiles down, then shares of `per` slices.
extern "C" __global__ void __launch_bounds__(256, 2)
    convolve_bf16(float *c, const float *bias, const unsigned char *images, const unsigned char *filter, u32 windows, u32 n,
                  u32 pitch, u32 per, u32 down, GEOMETRY)
{
    Geometry g = GEOMETRY_OF;
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * TILE, first = share * per, row = row0 + threadIdx.x / 4;
    Windows load = {images, filter + (u64)blockIdx.x * TILE * pitch + first * ROW, g, pitch,
                    {corner(row, windows, g), corner(row + 64, windows, g)}, tap(first * (ROW / 2) + threadIdx.x % 4 * 8, g)};
    float sum[4][4][4];
    multiply<Bf16>(sum, load, min(per, pitch / ROW - first), warp_row(), warp_column());
    finish(pixels(c, bias, windows, n, share), sum, row0 + warp_row(), blockIdx.x * TILE + warp_column());
}

// Divides numbers below 2^31.
struct Divisor {
    u32 factor, shift;

    __device__ __forceinline__ u32 operator()(u32 x) const { return (u32)((u64)x * factor >> shift); }
};

// The corner of a window, for many of them.
struct Fast {
    Divisor by_area, by_out;

    __device__ __forceinline__ Corner operator()(u32 window, const Geometry &g) const
    {
        u32 image = by_area(window), rest = window - image * g.out * g.out, down = by_out(rest);
        return corner(image, down, rest - down * g.out, g);
    }
};

// Elements of windows as rows, windows along k; on the right the gradient of what came out.
struct Elements {
    const unsigned char *images, *gradient;
    Geometry g;
    Fast fast;
    u32 windows, n, first, column;
    Tap at;
    static const bool ACROSS = true;

    __device__ __forceinline__ void operator()(u32 base, u32 tile)
    {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            u32 k = threadIdx.x / 16 + half * 16, piece = threadIdx.x % 16, window = first + tile * 32 + k, from;
            bool is = window < windows, some = fast(window, g).find(from, at, g) && is;
            fetch(base + place_across(k, piece), images + (some ? (u64)from * 2 : 0), some);
            some = is && column < n;
            fetch(base + STAGE_BYTES + place_across(k, piece), gradient + (some ? ((u64)window * n + column) * 2 : 0), some);
        }
    }
};

extern "C" __global__ void __launch_bounds__(256, 2)
    convolve_filter_bf16(float *c, const unsigned char *images, const unsigned char *gradient, u32 windows, u32 n, u32 per, u32 down,
                         u32 area_factor, u32 area_shift, u32 out_factor, u32 out_shift, GEOMETRY)
{
    Geometry g = GEOMETRY_OF;
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * TILE, first = share * per * 32, piece = threadIdx.x % 16 * 8;
    Elements load = {images, gradient, g, {{area_factor, area_shift}, {out_factor, out_shift}}, windows, n, first,
                     blockIdx.x * TILE + piece, tap(row0 + piece, g)};
    float sum[4][4][4];
    multiply<Bf16>(sum, load, min(per, (windows - first + 31) / 32), warp_row(), warp_column());
    finish(pixels(c, 0, size * size * channels, n, share), sum, row0 + warp_row(), blockIdx.x * TILE + warp_column());
}

// The same on the ordinary units: a thread takes four elements of a slice together, along k or across it.
#define ALONG u32 r = threadIdx.x / 2, d = threadIdx.x % 2 * 4
#define ACROSS u32 r = threadIdx.x % 32 * 4, d = threadIdx.x / 32

__device__ __forceinline__ float4 some_of(const float *from, u64 at, bool some)
{
    return some ? *(const float4 *)(from + at) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

__device__ __forceinline__ void put_along(Slice &to, u32 r, u32 d, float4 x)
{
    to[d][r] = x.x, to[d + 1][r] = x.y, to[d + 2][r] = x.z, to[d + 3][r] = x.w;
}

struct PlainWindows {
    const float *images;
    Geometry g;
    Corner corner;
    Tap at;

    __device__ __forceinline__ void operator()(Slice &to, u32, u32)
    {
        ALONG;
        u32 from;
        bool some = corner.find(from, at, g);
        put_along(to, r, d, some_of(images, from, some));
        at.go(DEEP, g);
    }
};

// Rows of `n` numbers, one for each place along k: a filter as it lies, or the gradient of what came out. Or a filter turned round,
// with the channels that come out along k, and behind the last of them the element of the window before.
struct Rows {
    const float *at;
    u64 step, back;
    u32 d, channel, channels;
    bool some, along;

    __device__ __forceinline__ void operator()(Slice &to, u32 base, u32 end)
    {
        float4 x = some_of(at, 0, some && base + d < end);
        if (along)
            put_along(to, threadIdx.x / 2, d, x);
        else
            *(float4 *)&to[d][threadIdx.x % 32 * 4] = x;
        at += step;
        channel += DEEP;
        if (channel >= channels) {
            channel -= channels;
            at -= back;
        }
    }
};

__device__ __forceinline__ Rows rows(const float *from, u32 n, u32 column0, u32 first)
{
    ACROSS;
    return {from + (u64)(first + d) * n + column0 + r, (u64)DEEP * n, 0, d, 0, ~0u, column0 + r < n, false};
}

__device__ __forceinline__ Rows turned_rows(const float *from, u32 n, u32 column0, u32 first, u32 taps, u32 channels)
{
    ALONG;
    u32 number = (first + d) / channels, channel = first + d - number * channels;
    from += (u64)((taps - 1 - number) * n + column0 + r) * channels + channel;
    return {from, DEEP, (u64)(n + 1) * channels, d, channel, channels, column0 + r < n, true};
}

extern "C" __global__ void __launch_bounds__(256)
    convolve_plain(float *c, const float *bias, const float *images, const float *filter, u32 windows, u32 n, u32 turned, u32 per,
                   u32 down, GEOMETRY)
{
    Geometry g = GEOMETRY_OF;
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * TILE, column0 = blockIdx.x * TILE, first = share * per;
    PlainWindows left = {images, g, corner(row0 + threadIdx.x / 2, windows, g), tap(first + threadIdx.x % 2 * 4, g)};
    Rows right = turned ? turned_rows(filter, n, column0, first, size * size, channels) : rows(filter, n, column0, first);
    u32 end = min(size * size * channels, first + per);
    add_up(pixels(c, bias, windows, n, share), left, right, row0, column0, first, end);
}

struct PlainElements {
    const float *images;
    Geometry g;
    Fast fast;
    Tap at;

    __device__ __forceinline__ void operator()(Slice &to, u32 base, u32 end)
    {
        ACROSS;
        u32 from;
        bool some = fast(base + d, g).find(from, at, g) && base + d < end;
        *(float4 *)&to[d][r] = some_of(images, from, some);
    }
};

extern "C" __global__ void __launch_bounds__(256)
    convolve_filter_plain(float *c, const float *images, const float *gradient, u32 windows, u32 n, u32 per, u32 down,
                          u32 area_factor, u32 area_shift, u32 out_factor, u32 out_shift, GEOMETRY)
{
    Geometry g = GEOMETRY_OF;
    u32 share = blockIdx.y / down, row0 = blockIdx.y % down * TILE, column0 = blockIdx.x * TILE, first = share * per;
    PlainElements left = {images, g, {{area_factor, area_shift}, {out_factor, out_shift}}, tap(row0 + threadIdx.x % 32 * 4, g)};
    Rows right = rows(gradient, n, column0, first);
    add_up(pixels(c, 0, size * size * channels, n, share), left, right, row0, column0, first, min(windows, first + per));
}
