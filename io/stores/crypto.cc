// SPDX-License-Identifier: Apache-2.0
#include "io/stores/crypto.h"

#include "absl/strings/escaping.h"
#include "io/stores/shared_library.h"

#if HLOKIT_HTTP_STORES
#include <openssl/evp.h>
#include <openssl/hmac.h>
#endif

namespace hlokit {
namespace {

#if HLOKIT_HTTP_STORES

struct CryptoLibrary {
  SharedLibrary library;
  decltype(EVP_Digest)* digest = nullptr;
  decltype(EVP_sha256)* sha256 = nullptr;
  decltype(EVP_md5)* md5 = nullptr;
  decltype(HMAC)* hmac = nullptr;

  CryptoLibrary() {
    if (!library.Load(HLOKIT_LIBCRYPTO, "libssl3").ok()) return;
    library.Resolve("EVP_Digest", &digest);
    library.Resolve("EVP_sha256", &sha256);
    library.Resolve("EVP_md5", &md5);
    library.Resolve("HMAC", &hmac);
  }
};

const CryptoLibrary& Crypto() {
  static const CryptoLibrary& crypto = *new CryptoLibrary();
  return crypto;
}

std::string DigestBy(const EVP_MD* kind, std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const int ok =
      Crypto().digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size, kind, nullptr);
  out.resize(ok == 1 ? size : 0);
  return out;
}

#endif

}  // namespace

#if HLOKIT_HTTP_STORES

absl::Status LoadCrypto() { return Crypto().library.status(); }

std::string Sha256(std::string_view bytes) { return DigestBy(Crypto().sha256(), bytes); }

std::string Md5(std::string_view bytes) { return DigestBy(Crypto().md5(), bytes); }

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string out(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  const unsigned char* const made = Crypto().hmac(Crypto().sha256(), key.data(), static_cast<int>(key.size()),
                                                  reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                                                  reinterpret_cast<unsigned char*>(out.data()), &size);
  out.resize(made != nullptr ? size : 0);
  return out;
}

#else

absl::Status LoadCrypto() { return absl::UnimplementedError("this build has no remote stores: libcurl was missing"); }
std::string Sha256(std::string_view) { return ""; }
std::string Md5(std::string_view) { return ""; }
std::string HmacSha256(std::string_view, std::string_view) { return ""; }

#endif

std::string HexOf(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string Base64Of(std::string_view bytes) {
  std::string text;
  absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()), &text);
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  if (!absl::Base64Unescape(absl::string_view(text.data(), text.size()), &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace hlokit
