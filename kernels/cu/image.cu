// Windows over images, which lie as N x H x W x C. What goes back is gathered: every element is written once, by one thread.
#include "common.cuh"
#include "math.cuh"

struct Window {
    u32 edge, channels, size, stride, pad, out;
};

// The pixel along one axis that element `tap` of window `at` falls on; `edge` or more: none.
__device__ __forceinline__ u32 pixel(const Window &w, u32 at, u32 tap)
{
    // Below zero wraps round to more than any edge.
    return at * w.stride + tap - w.pad;
}

// The window along one axis whose element `tap` falls on `pixel`; `out` or more: none.
__device__ __forceinline__ u32 window_over(const Window &w, u32 pixel, u32 tap)
{
    u32 reach = pixel + w.pad - tap;
    return (int)reach < 0 || reach % w.stride ? w.out : reach / w.stride;
}

// A block has one window, or one pixel: image, row, column.
struct Place {
    u32 image, y, x;
};

__device__ __forceinline__ Place place(u32 edge)
{
    Place p;
    p.x = blockIdx.x % edge;
    p.y = blockIdx.x / edge % edge;
    p.image = blockIdx.x / edge / edge;
    return p;
}

#define GEOMETRY u32 edge, u32 channels, u32 size, u32 stride, u32 pad, u32 out
#define WINDOW Window w = {edge, channels, size, stride, pad, out}

extern "C" __global__ void __launch_bounds__(256) im2col(float *columns, const float *images, GEOMETRY)
{
    WINDOW;
    Place at = place(out);
    u32 row = size * size * channels;
    columns += (u64)blockIdx.x * row;
    images += (u64)at.image * edge * edge * channels;
    for (u32 i = threadIdx.x; i < row; i += blockDim.x) {
        u32 tap = i / channels, channel = i - tap * channels;
        u32 y = pixel(w, at.y, tap / size), x = pixel(w, at.x, tap % size);
        columns[i] = y < edge && x < edge ? images[((u64)y * edge + x) * channels + channel] : 0.0f;
    }
}

extern "C" __global__ void __launch_bounds__(256) col2im(float *images, const float *columns, GEOMETRY)
{
    WINDOW;
    Place at = place(edge);
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float sum = 0.0f;
        for (u32 tap = 0; tap < size * size; tap++) {
            u32 down = window_over(w, at.y, tap / size), across = window_over(w, at.x, tap % size);
            if (down >= out || across >= out) continue;
            u64 window = ((u64)at.image * out + down) * out + across;
            sum += columns[(window * size * size + tap) * channels + channel];
        }
        images[(u64)blockIdx.x * channels + channel] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256) max_pool(float *most, float *which, const float *images, GEOMETRY)
{
    WINDOW;
    Place at = place(out);
    images += (u64)at.image * edge * edge * channels;
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float best = 0.0f, best_tap = 0.0f;
        bool some = false;
        for (u32 tap = 0; tap < size * size; tap++) {
            u32 y = pixel(w, at.y, tap / size), x = pixel(w, at.x, tap % size);
            if (y >= edge || x >= edge) continue;
            float value = images[((u64)y * edge + x) * channels + channel];
            if (!some || value > best) {
                best = value;
                best_tap = (float)tap;
                some = true;
            }
        }
        most[(u64)blockIdx.x * channels + channel] = best;
        which[(u64)blockIdx.x * channels + channel] = best_tap;
    }
}

extern "C" __global__ void __launch_bounds__(256) max_pool_backward(float *images, const float *gradient, const float *which, GEOMETRY)
{
    WINDOW;
    Place at = place(edge);
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float sum = 0.0f;
        for (u32 tap = 0; tap < size * size; tap++) {
            u32 down = window_over(w, at.y, tap / size), across = window_over(w, at.x, tap % size);
            if (down >= out || across >= out) continue;
            u64 from = (((u64)at.image * out + down) * out + across) * channels + channel;
            if (which[from] == (float)tap) sum += gradient[from];
        }
        images[(u64)blockIdx.x * channels + channel] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(256) mean_pool(float *means, const float *images, GEOMETRY)
{
    WINDOW;
    Place at = place(out);
    images += (u64)at.image * edge * edge * channels;
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float sum = 0.0f;
        for (u32 tap = 0; tap < size * size; tap++) {
            u32 y = pixel(w, at.y, tap / size), x = pixel(w, at.x, tap % size);
            if (y < edge && x < edge) sum += images[((u64)y * edge + x) * channels + channel];
        }
        means[(u64)blockIdx.x * channels + channel] = sum / (float)(size * size);
    }
}

extern "C" __global__ void __launch_bounds__(256) mean_pool_backward(float *images, const float *gradient, GEOMETRY)
{
    WINDOW;
    Place at = place(edge);
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float sum = 0.0f;
        for (u32 tap = 0; tap < size * size; tap++) {
            u32 down = window_over(w, at.y, tap / size), across = window_over(w, at.x, tap % size);
            if (down < out && across < out)
                sum += gradient[(((u64)at.image * out + down) * out + across) * channels + channel];
        }
        images[(u64)blockIdx.x * channels + channel] = sum / (float)(size * size);
    }
}

// A block has one image.
extern "C" __global__ void __launch_bounds__(256) global_pool(float *means, const float *images, u32 area, u32 channels)
{
    images += (u64)blockIdx.x * area * channels;
    for (u32 channel = threadIdx.x; channel < channels; channel += blockDim.x) {
        float sum = 0.0f;
        for (u32 i = 0; i < area; i++) sum += images[(u64)i * channels + channel];
        means[(u64)blockIdx.x * channels + channel] = sum / (float)area;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    global_pool_backward(float *images, const float *gradient, u32 area, u32 channels, u64 n)
{
    EACH(i, n) images[i] = gradient[i / ((u64)area * channels) * channels + i % channels] / (float)area;
}
