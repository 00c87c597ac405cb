//! Memory of a GPU for drivers of other devices.

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice_attribute_enum as Attribute};

use super::{Buffer, Gpu, Trouble, failed};

#[expect(unsafe_code, reason = "driver calls")]
impl Gpu {
    /// A dma-buf of `buffer`, by which another driver reaches it. Its length must be a multiple of the size of a page.
    ///
    /// # Errors
    /// `NotRun` where this driver or kernel has none, else with the driver's words.
    pub fn dma_buf(&self, buffer: &Buffer) -> Result<OwnedFd, Trouble> {
        self.enter()?;
        let wanted = Attribute::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED;
        // SAFETY: the device came from the driver.
        let able =
            unsafe { result::device::get_attribute(self.device, wanted) }.map_err(failed("cuDeviceGetAttribute"))?;
        if able == 0 {
            return Err(Trouble::NotRun("the NVIDIA driver has no dma-buf here".to_owned()));
        }
        let kind = sys::CUmemRangeHandleType::CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
        let mut fd: RawFd = -1;
        // SAFETY: writes one file descriptor; the range is that of a buffer that lives.
        unsafe { sys::cuMemGetHandleForAddressRange((&raw mut fd).cast(), buffer.at, buffer.bytes, kind, 0) }
            .result()
            .map_err(failed("cuMemGetHandleForAddressRange"))?;
        // SAFETY: the driver opened it for us, and nobody else closes it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}
