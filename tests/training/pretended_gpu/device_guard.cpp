// Makes a torch without CUDA believe that one GPU is there: the guard, the hooks and the accelerator
// that its autograd engine asks for. A program starts with this library in LD_PRELOAD.
#include <ATen/DeviceAccelerator.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {
struct PretendedGuard final : public c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  void record(void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {
    *event = reinterpret_cast<void*>(1);
  }
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeDevice(const c10::DeviceIndex) const override {}
  void synchronizeEvent(void*) const override {}
};
C10_REGISTER_GUARD_IMPL(CUDA, PretendedGuard);
}  // namespace

namespace at {
namespace {
struct CUDAHooks : public CUDAHooksInterface {
  CUDAHooks(CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
};
REGISTER_CUDA_HOOKS(CUDAHooks);
}  // namespace
}  // namespace at

namespace at::accelerator {
std::optional<c10::DeviceType> getAccelerator(bool) { return std::nullopt; }
bool isAccelerator(c10::DeviceType) { return false; }
}  // namespace at::accelerator
