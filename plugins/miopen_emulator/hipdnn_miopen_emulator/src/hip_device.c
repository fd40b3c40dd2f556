/* Stand-in libamdhip64: devices, versions and error texts.
 *
 *   MIOPEN_EMULATOR_ARCH     architecture, as in gcnArchName (default gfx90a:sramecc+:xnack-, an MI200)
 *   MIOPEN_EMULATOR_CU       number of compute units (default 110); part of a perf-db file's name
 *   MIOPEN_EMULATOR_DEVICES  number of devices (default 1; 0 = hipErrorNoDevice)
 */
#include "hip_standin.h"

#include <hip/hip_version.h>
#include <string.h>

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

static const char *architecture(void) { return setting("MIOPEN_EMULATOR_ARCH", "gfx90a:sramecc+:xnack-"); }
static int compute_units(void) { return atoi(setting("MIOPEN_EMULATOR_CU", "110")); }
static int devices(void) { return atoi(setting("MIOPEN_EMULATOR_DEVICES", "1")); }
static int warp_size(void) { return strncmp(architecture(), "gfx1", 4) ? 64 : 32; }

size_t device_memory_total(void) { return (size_t)64 << 30; }

static _Thread_local int current;

hipError_t hipInit(unsigned flags) {
  (void)flags;
  return devices() ? hipSuccess : hipErrorNoDevice;
}

hipError_t hipRuntimeGetVersion(int *version) { *version = HIP_VERSION; return hipSuccess; }
hipError_t hipDriverGetVersion(int *version) { *version = HIP_VERSION; return hipSuccess; }

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

hipError_t hipDeviceSynchronize(void) { return hipSuccess; }

hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  *bytes = device_memory_total();
  return hipSuccess;
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *p, int device) {
  if (device < 0 || device >= devices()) return hipErrorInvalidDevice;
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "HIP stand-in on the CPU (kernels are not run)");
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", architecture());
  p->totalGlobalMem = device_memory_total();
  p->multiProcessorCount = compute_units();
  p->warpSize = warp_size();
  p->sharedMemPerBlock = p->sharedMemPerMultiprocessor = p->maxSharedMemoryPerMultiProcessor = 65536;
  p->regsPerBlock = 65536;
  p->maxThreadsPerBlock = 1024;
  p->maxThreadsPerMultiProcessor = 2048;
  for (int i = 0; i < 3; i++) {
    p->maxThreadsDim[i] = 1024;
    p->maxGridSize[i] = i ? 65536 : 2147483647;
  }
  p->clockRate = 1700000;         /* kHz */
  p->memoryClockRate = 1600000;   /* kHz */
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
    default:
      log_line("attribute %d unknown, answered 0", (int)attribute);
      *value = 0;
  }
  return hipSuccess;
}

/* The errors these stand-ins return; names as in hip_runtime_api.h. */
static const struct { hipError_t code; const char *name, *text; } errors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorFileNotFound, "hipErrorFileNotFound", "file not found"},
    {hipErrorInvalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
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

hipError_t hipGetLastError(void) { return hipSuccess; }
hipError_t hipPeekAtLastError(void) { return hipSuccess; }
