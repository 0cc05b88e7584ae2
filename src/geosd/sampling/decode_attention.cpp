// Attention of one query a row over the filled columns of a preallocated cache, fp32, one thread.
//
// queries [B, H, D], keys and values [B, K, C, D], first [B], result [B, H, D]. Row b reads columns
// max(first[b], filled - window) to filled - 1, so padding and what a window has left behind are
// never touched. Two passes over the scores: their maximum, then exponentials and their sum.
// The compiler may reorder sums (-fassociative-math) but must not change how the process rounds:
// -ffast-math would, for a shared library.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using torch::stable::Tensor;

// e^x for x <= 0 within 2 units in the last place (Cephes); no branch, so that it vectorises.
inline float exponential(float x) {
  x = std::max(x, -87.0f);
  const float n = __builtin_floorf(x * 1.44269504f + 0.5f);
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return p * power;
}

constexpr int64_t WIDEST = 512;  // elements of a head

// WIDTH is D where it is known when this is compiled, which unrolls the inner loops; 0 elsewhere.
template <int WIDTH>
void attend_row(const float* query, const float* keys, const float* values, float* result,
                float* scores, int64_t columns, int64_t width, float scale) {
  const int64_t D = WIDTH ? WIDTH : width;
  float highest = -3.0e38f;
  for (int64_t c = 0; c < columns; ++c) {
    float score = 0.0f;
    for (int64_t d = 0; d < D; ++d) score += query[d] * keys[c * D + d];
    scores[c] = score * scale;
  }
  for (int64_t c = 0; c < columns; ++c) highest = std::max(highest, scores[c]);
  float total = 0.0f;
  for (int64_t c = 0; c < columns; ++c) {
    scores[c] = exponential(scores[c] - highest);
    total += scores[c];
  }
  // Two running sums, because one would wait for itself.
  float sums[WIDTH ? WIDTH : WIDEST] = {}, odd[WIDTH ? WIDTH : WIDEST] = {};
  int64_t c = 0;
  for (; c + 1 < columns; c += 2)
    for (int64_t d = 0; d < D; ++d) {
      sums[d] += scores[c] * values[c * D + d];
      odd[d] += scores[c + 1] * values[(c + 1) * D + d];
    }
  for (; c < columns; ++c)
    for (int64_t d = 0; d < D; ++d) sums[d] += scores[c] * values[c * D + d];
  for (int64_t d = 0; d < D; ++d) result[d] = (sums[d] + odd[d]) / total;
}

void decode_attention(const Tensor queries, const Tensor keys, const Tensor values,
                      const Tensor first, Tensor result, int64_t filled, int64_t window,
                      double scale) {
  const int64_t B = queries.size(0), H = queries.size(1), D = queries.size(2);
  const int64_t K = keys.size(1), C = keys.size(2), group = H / K;
  const auto* q = static_cast<const float*>(queries.data_ptr());
  const auto* k = static_cast<const float*>(keys.data_ptr());
  const auto* v = static_cast<const float*>(values.data_ptr());
  const auto* starts = static_cast<const int64_t*>(first.data_ptr());
  auto* out = static_cast<float*>(result.data_ptr());
  const auto attend = D == 16    ? attend_row<16>
                      : D == 32  ? attend_row<32>
                      : D == 64  ? attend_row<64>
                      : D == 128 ? attend_row<128>
                                 : attend_row<0>;
  std::vector<float> scores(filled);
  for (int64_t b = 0; b < B; ++b) {
    const int64_t start = std::max(starts[b], window ? filled - window : int64_t{0});
    for (int64_t h = 0; h < H; ++h) {
      const int64_t from = ((b * K + h / group) * C + start) * D;
      const int64_t row = (b * H + h) * D;
      attend(q + row, k + from, v + from, out + row, scores.data(), filled - start, D,
             static_cast<float>(scale));
    }
  }
}

}  // namespace

STABLE_TORCH_LIBRARY_IMPL(geosd, CPU, library) {
  library.impl("decode_attention", TORCH_BOX(&decode_attention));
}
