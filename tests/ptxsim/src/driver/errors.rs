//! Results of driver calls, by number, as CUDA names them.

/// Result of a call.
pub(super) type Code = i32;

pub(super) const SUCCESS: Code = 0;
pub(super) const INVALID_VALUE: Code = 1;
pub(super) const OUT_OF_MEMORY: Code = 2;
pub(super) const NOT_INITIALIZED: Code = 3;
pub(super) const INVALID_DEVICE: Code = 101;
pub(super) const NO_BINARY: Code = 209;
pub(super) const INVALID_PTX: Code = 218;
pub(super) const NO_PEER: Code = 217;
pub(super) const INVALID_HANDLE: Code = 400;
pub(super) const NOT_FOUND: Code = 500;
pub(super) const NOT_READY: Code = 600;
pub(super) const ILLEGAL_ADDRESS: Code = 700;
pub(super) const ALREADY_OPEN: Code = 704;
pub(super) const LAUNCH_FAILED: Code = 719;

/// Name and words of a code, as C strings.
pub(super) const fn words(code: Code) -> (&'static std::ffi::CStr, &'static std::ffi::CStr) {
    match code {
        SUCCESS => (c"CUDA_SUCCESS", c"no error"),
        INVALID_VALUE => (c"CUDA_ERROR_INVALID_VALUE", c"invalid argument"),
        OUT_OF_MEMORY => (c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory"),
        NOT_INITIALIZED => (c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error"),
        100 => (c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected"),
        INVALID_DEVICE => (c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal"),
        NO_BINARY => (c"CUDA_ERROR_NO_BINARY_FOR_GPU", c"no kernel image is available for execution on the device"),
        INVALID_PTX => (c"CUDA_ERROR_INVALID_PTX", c"a PTX JIT compilation failed"),
        NO_PEER => (c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", c"peer access is not supported between these two devices"),
        INVALID_HANDLE => (c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle"),
        NOT_READY => (c"CUDA_ERROR_NOT_READY", c"device not ready"),
        ALREADY_OPEN => (c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", c"peer access is already enabled"),
        NOT_FOUND => (c"CUDA_ERROR_NOT_FOUND", c"named symbol not found"),
        ILLEGAL_ADDRESS => (c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered"),
        LAUNCH_FAILED => (c"CUDA_ERROR_LAUNCH_FAILED", c"unspecified launch failure"),
        803 => {
            (c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", c"system has unsupported display driver / cuda driver combination")
        }
        _ => (c"CUDA_ERROR_UNKNOWN", c"unknown error"),
    }
}
