#include "trainer/model/gpu_ops/cublas_lt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <map>
#include <mutex>

#include "trainer/base/error.h"
#include "trainer/cuda/cuda_check.h"

namespace farstep {

namespace {

#define FARSTEP_LT_FUNCTION(name) decltype(&(name)) name##_ = function<decltype(&(name))>(#name)

// cuBLASLt's functions.
struct LtLibrary {
  FARSTEP_LT_FUNCTION(cublasLtCreate);
  FARSTEP_LT_FUNCTION(cublasLtGetStatusName);
  FARSTEP_LT_FUNCTION(cublasLtMatmul);
  FARSTEP_LT_FUNCTION(cublasLtMatmulAlgoGetHeuristic);
  FARSTEP_LT_FUNCTION(cublasLtMatmulDescCreate);
  FARSTEP_LT_FUNCTION(cublasLtMatmulDescDestroy);
  FARSTEP_LT_FUNCTION(cublasLtMatmulDescSetAttribute);
  FARSTEP_LT_FUNCTION(cublasLtMatmulPreferenceCreate);
  FARSTEP_LT_FUNCTION(cublasLtMatmulPreferenceDestroy);
  FARSTEP_LT_FUNCTION(cublasLtMatmulPreferenceSetAttribute);
  FARSTEP_LT_FUNCTION(cublasLtMatrixLayoutCreate);
  FARSTEP_LT_FUNCTION(cublasLtMatrixLayoutDestroy);

  static const LtLibrary& get() {
    static const LtLibrary library;
    return library;
  }

  void check(cublasStatus_t status, const char* call) const {
    if (status == CUBLAS_STATUS_SUCCESS) return;
    throw InternalError(fmt::format("{}: {}", call, cublasLtGetStatusName_(status)));
  }

 private:
  template <typename Function>
  static Function function(const char* name) {
    // libtorch_cuda has loaded it, wherever it is.
    void* const library = dlopen("libcublasLt.so.13", RTLD_NOW);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
      throw InternalError(fmt::format("cuBLASLt cannot be loaded ({})", dlerror()));
    }
    return reinterpret_cast<Function>(found);
  }
};

#undef FARSTEP_LT_FUNCTION

#define FARSTEP_LT_CHECK(function, ...) \
  LtLibrary::get().check(LtLibrary::get().function##_(__VA_ARGS__), #function)

// A matrix of column-major memory, as the library has them.
class Layout {
 public:
  Layout(cudaDataType_t type, int64_t rows, int64_t columns, int64_t stride) {
    FARSTEP_LT_CHECK(cublasLtMatrixLayoutCreate, &layout_, type, static_cast<uint64_t>(rows),
                     static_cast<uint64_t>(columns), stride);
  }
  ~Layout() { LtLibrary::get().cublasLtMatrixLayoutDestroy_(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

Layout layout_of(const LtMatrix& matrix, int64_t rows, int64_t columns) {
  // Rows of row-major memory are columns there.
  return matrix.transposed ? Layout(matrix.type, rows, columns, matrix.stride)
                           : Layout(matrix.type, columns, rows, matrix.stride);
}

// The library has matrices of column-major memory only. So it computes the transpose of c, from the
// transposes of b and a.
class Description {
 public:
  Description(const LtProduct& product, const LtArrays& arrays)
      : first(layout_of(product.b, product.k, product.n)),
        second(layout_of(product.a, product.m, product.k)),
        result(product.c.type, product.n, product.m, product.n) {
    FARSTEP_LT_CHECK(cublasLtMatmulDescCreate, &product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    set(CUBLASLT_MATMUL_DESC_TRANSA, product.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, product.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (product.fast) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, int8_t{1});
    if (arrays.b_scale) set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, arrays.b_scale);
    if (arrays.a_scale) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, arrays.a_scale);
  }
  ~Description() { LtLibrary::get().cublasLtMatmulDescDestroy_(product_); }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  cublasLtMatmulDesc_t product() const { return product_; }

  const Layout first, second, result;

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    FARSTEP_LT_CHECK(cublasLtMatmulDescSetAttribute, product_, attribute, &value, sizeof value);
  }

  cublasLtMatmulDesc_t product_ = nullptr;
};

// What an algorithm must respect.
class Preference {
 public:
  Preference(const LtProduct& product, std::size_t workspace_bytes) {
    FARSTEP_LT_CHECK(cublasLtMatmulPreferenceCreate, &preference_);
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{workspace_bytes});
    // Parts of a sum are added in fp32, not in the type of the result.
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
        uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.b.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.a.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.c.alignment);
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.c.alignment);
  }
  ~Preference() { LtLibrary::get().cublasLtMatmulPreferenceDestroy_(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;

  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    FARSTEP_LT_CHECK(cublasLtMatmulPreferenceSetAttribute, preference_, attribute, &value,
                     sizeof value);
  }

  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

CublasLt::CublasLt() {
  FARSTEP_LT_CHECK(cublasLtCreate, &handle_);
}

const CublasLt& CublasLt::of_current_gpu() {
  static std::mutex mutex;
  static std::map<int, const CublasLt*> known;
  int gpu = 0;
  FARSTEP_CUDA_CHECK(cudaGetDevice(&gpu));
  const std::scoped_lock lock(mutex);
  auto& own = known[gpu];
  if (own == nullptr) own = new CublasLt;  // the driver may be gone before static objects are
  return *own;
}

std::vector<CublasLt::Algorithm> CublasLt::algorithms(const LtProduct& product,
                                                      const LtArrays& arrays,
                                                      std::size_t workspace_bytes) const {
  constexpr int kMost = 16;  // it has returned 8
  const Description description(product, arrays);
  const Preference preference(product, workspace_bytes);
  std::array<cublasLtMatmulHeuristicResult_t, kMost> results;
  int count = 0;
  const auto status = LtLibrary::get().cublasLtMatmulAlgoGetHeuristic_(
      handle_, description.product(), description.first.get(), description.second.get(),
      description.result.get(), description.result.get(), preference.get(), kMost, results.data(),
      &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  LtLibrary::get().check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Algorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    const auto& result = results[static_cast<std::size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

bool CublasLt::multiply(const LtProduct& product, const Algorithm& algorithm,
                        const LtArrays& arrays, void* workspace, std::size_t workspace_bytes,
                        cudaStream_t stream) const {
  const Description description(product, arrays);
  const float scale = 1, kept = arrays.add ? 1 : 0;
  const auto status = LtLibrary::get().cublasLtMatmul_(
      handle_, description.product(), &scale, arrays.b, description.first.get(), arrays.a,
      description.second.get(), &kept, arrays.c, description.result.get(), arrays.c,
      description.result.get(), &algorithm, workspace, workspace_bytes, stream);
  // It answers either to an algorithm that does not suit the product.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  LtLibrary::get().check(status, "cublasLtMatmul");
  return true;
}

}  // namespace farstep
