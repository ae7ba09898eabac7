// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "io/stores/aws_signature.h"
#include "io/stores/azure_signature.h"
#include "io/stores/crypto.h"
#include "io/stores/http_client.h"
#include "io/stores/http_store.h"

namespace hlokit {
namespace {

class SignatureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const absl::Status status = LoadCrypto(); !status.ok()) GTEST_SKIP() << status;
  }
};

std::string SignatureIn(const std::string& authorization) {
  const std::string name = ",Signature=";
  const size_t at = authorization.find(name);
  return at == std::string::npos ? "" : authorization.substr(at + name.size());
}

// The examples of "Authenticating Requests: Using the Authorization Header" of Amazon S3's reference.
const AwsSigningKey kExampleKey = {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1",
                                   "s3"};
constexpr char kExampleTime[] = "20130524T000000Z";

AwsRequest Example(std::string method, std::string path, std::string body = "") {
  AwsRequest request;
  request.method = std::move(method);
  request.path = std::move(path);
  request.payload_hash = HexOf(Sha256(body));
  request.headers = {{"host", "examplebucket.s3.amazonaws.com"},
                     {"x-amz-date", kExampleTime},
                     {"x-amz-content-sha256", request.payload_hash}};
  return request;
}

TEST_F(SignatureTest, S3GetObject) {
  AwsRequest request = Example("GET", "/test.txt");
  request.headers["range"] = "bytes=0-9";
  EXPECT_EQ(AwsAuthorization(kExampleKey, request, kExampleTime),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST_F(SignatureTest, S3PutObject) {
  AwsRequest request = Example("PUT", "/" + HttpClient::Escape("test$file.text", true), "Welcome to Amazon S3.");
  request.headers["date"] = "Fri, 24 May 2013 00:00:00 GMT";
  request.headers["x-amz-storage-class"] = "REDUCED_REDUNDANCY";
  EXPECT_EQ(SignatureIn(AwsAuthorization(kExampleKey, request, kExampleTime)),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST_F(SignatureTest, S3Queries) {
  AwsRequest lifecycle = Example("GET", "/");
  lifecycle.query = {{"lifecycle", ""}};
  EXPECT_EQ(SignatureIn(AwsAuthorization(kExampleKey, lifecycle, kExampleTime)),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  AwsRequest list = Example("GET", "/");
  list.query = {{"prefix", "J"}, {"max-keys", "2"}};
  EXPECT_EQ(SignatureIn(AwsAuthorization(kExampleKey, list, kExampleTime)),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

// get-vanilla of AWS's suite of tests for Signature Version 4.
TEST_F(SignatureTest, OtherServices) {
  const AwsSigningKey key = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1", "service"};
  AwsRequest request;
  request.method = "GET";
  request.path = "/";
  request.payload_hash = HexOf(Sha256(""));
  request.headers = {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}};
  EXPECT_EQ(SignatureIn(AwsAuthorization(key, request, "20150830T123600Z")),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

// FIPS 180-4, RFC 4231 (case 2) and RFC 1321.
TEST_F(SignatureTest, Digests) {
  EXPECT_EQ(HexOf(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(HexOf(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HexOf(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HexOf(Md5("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(FromBase64(Base64Of(std::string("\0\xff\1", 3))), std::string("\0\xff\1", 3));
  EXPECT_EQ(FromBase64("*"), std::nullopt);
}

// The example "Get Container Metadata" of "Authorize with Shared Key" of Azure's reference.
TEST_F(SignatureTest, AzureStringToSign) {
  AzureRequest request;
  request.method = "GET";
  request.account = "myaccount";
  request.path = "/mycontainer";
  request.query = {{"restype", "container"}, {"timeout", "20"}, {"comp", "metadata"}};
  request.headers = {{"x-ms-version", "2015-02-21"}, {"x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"}};
  EXPECT_EQ(AzureStringToSign(request),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n"
            "/myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20");
}

TEST(RequestTest, TimesAndPaths) {
  EXPECT_EQ(AwsTime(1369353600), kExampleTime);
  EXPECT_EQ(HttpTime(1369353600), "Fri, 24 May 2013 00:00:00 GMT");
  EXPECT_EQ(HttpClient::Escape("a/b c+\xc3\xa4~", true), "a/b%20c%2B%C3%A4~");
  EXPECT_EQ(HttpClient::Escape("a/b", false), "a%2Fb");
}

}  // namespace
}  // namespace hlokit
