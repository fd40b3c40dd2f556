// Stand-in libamdhip64: devices, versions and error texts.
//
//   MIOPEN_EMULATOR_ARCH     architecture, as in gcnArchName (default gfx90a:sramecc+:xnack-, an
//   MI200) MIOPEN_EMULATOR_CU       number of compute units (default 110); part of a perf-db file's
//   name MIOPEN_EMULATOR_DEVICES  number of devices (default 1; 0 = hipErrorNoDevice)
#include <hip/hip_version.h>

#include "guarded_memory.hpp"
#include "runtime.hpp"

namespace {

int compute_units() { return std::atoi(setting("MIOPEN_EMULATOR_CU", "110")); }
int devices() { return std::atoi(setting("MIOPEN_EMULATOR_DEVICES", "1")); }
int warp_size() { return static_cast<int>(wavefront_size()); }

thread_local int current;

}  // namespace

size_t device_memory_total() { return size_t{64} << 30; }

extern "C" {

hipError_t hipInit(unsigned) { return devices() ? hipSuccess : hipErrorNoDevice; }

hipError_t hipRuntimeGetVersion(int *version) {
  *version = HIP_VERSION;
  return hipSuccess;
}
hipError_t hipDriverGetVersion(int *version) {
  *version = HIP_VERSION;
  return hipSuccess;
}

hipError_t hipGetDeviceCount(int *count) {
  *count = devices();
  return *count ? hipSuccess : hipErrorNoDevice;
}

hipError_t hipGetDevice(int *device) {
  if (!devices()) return hipErrorNoDevice;
  *device = current;
  return hipSuccess;
}

hipError_t hipSetDevice(int device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  current = device;
  return hipSuccess;
}

hipError_t hipDeviceSynchronize() {
  return guarded_memory_intact("synchronize") ? hipSuccess : hipErrorIllegalAddress;
}

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  *bytes = device_memory_total();
  return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *p, int device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  *p = {};
  std::snprintf(p->name, sizeof p->name, "MIOpen emulator on the CPU");
  std::snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", device_architecture());
  p->totalGlobalMem = device_memory_total();
  p->multiProcessorCount = compute_units();
  p->warpSize = warp_size();
  p->sharedMemPerBlock = p->sharedMemPerMultiprocessor = p->maxSharedMemoryPerMultiProcessor =
      65536;
  p->regsPerBlock = 65536;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  for (int i = 0; i < 3; i++) {
    p->maxThreadsDim[i] = 1024;
    p->maxGridSize[i] = i ? 65536 : 2147483647;
  }
  p->clockRate = 1700000;        // kHz
  p->memoryClockRate = 1600000;  // kHz
  p->clockInstructionRate = 100000;
  p->memoryBusWidth = 4096;
  p->l2CacheSize = 8 << 20;
  p->totalConstMem = 2147483647;
  p->major = 9;
  p->concurrentKernels = p->cooperativeLaunch = p->unifiedAddressing = p->canMapHostMemory = 1;
  p->pciBusID = 3 + device;
  return hipSuccess;
}

hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  switch (attribute) {
    case hipDeviceAttributeWarpSize: *value = warp_size(); break;
    case hipDeviceAttributeMultiprocessorCount: *value = compute_units(); break;
    case hipDeviceAttributeClockRate: *value = 1700000; break;
    case hipDeviceAttributeMemoryClockRate: *value = 1600000; break;
    case hipDeviceAttributeMemoryBusWidth: *value = 4096; break;
    case hipDeviceAttributeMaxThreadsPerBlock:
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY:
    case hipDeviceAttributeMaxBlockDimZ: *value = 1024; break;
    case hipDeviceAttributeMaxGridDimX:
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ: *value = 2147483647; break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: *value = 65536; break;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: *value = 2048; break;
    case hipDeviceAttributeComputeCapabilityMajor: *value = 9; break;
    case hipDeviceAttributeL2CacheSize: *value = 8 << 20; break;
    case hipDeviceAttributeCooperativeLaunch:
    case hipDeviceAttributeConcurrentKernels: *value = 1; break;
    default: LogLine("unknown attribute").whole("attribute", attribute); *value = 0;
  }
  return hipSuccess;
}

// The errors these stand-ins return; names as in hip_runtime_api.h.
static const struct {
  hipError_t code;
  const char *name, *text;
} errors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration",
     "invalid configuration argument"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
};

const char *hipGetErrorName(hipError_t code) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return errors[i].name;
  return "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t code) {
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    if (errors[i].code == code) return errors[i].text;
  return "unknown error";
}

hipError_t hipGetLastError() { return hipSuccess; }
hipError_t hipPeekAtLastError() { return hipSuccess; }
}
