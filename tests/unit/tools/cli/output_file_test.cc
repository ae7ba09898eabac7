// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "tests/unit/files.h"
#include "tests/unit/temporary_folder.h"

namespace hlokit::cli {
namespace {

size_t FilesIn(const std::filesystem::path& directory) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(directory), {}));
}

TEST(OutputFileTest, CommitMakesTheWholeTextVisible) {
  const TemporaryFolder directory;
  const std::filesystem::path path = directory.path() / "out.txt";
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path.string());
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "one " << std::string(200'000, 'x');
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(ReadFile(path), "one " + std::string(200'000, 'x'));
  file->reset();
  EXPECT_EQ(FilesIn(directory.path()), 1u);
}

TEST(OutputFileTest, WithoutCommitAnOlderFileStaysAndNoOtherIsLeft) {
  const TemporaryFolder directory;
  const std::filesystem::path path = directory.path() / "out.txt";
  WriteFile(path, "old");
  {
    absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path.string());
    ASSERT_TRUE(file.ok());
    (*file)->writer() << std::string(200'000, 'x');
  }
  EXPECT_EQ(ReadFile(path), "old");
  EXPECT_EQ(FilesIn(directory.path()), 1u);
}

TEST(OutputFileTest, FollowsSymbolicLinks) {
  const TemporaryFolder directory;
  std::filesystem::create_directory(directory.path() / "there");
  const std::filesystem::path target = directory.path() / "there" / "target.txt", link = directory.path() / "link.txt";
  WriteFile(target, "old");
  std::filesystem::create_symlink(target, link);
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(link.string());
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "new";
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(ReadFile(target), "new");
}

TEST(OutputFileTest, KeepsPermissions) {
  const TemporaryFolder directory;
  const std::filesystem::path path = directory.path() / "out.txt";
  WriteFile(path, "old");
  const auto mode = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
  std::filesystem::permissions(path, mode);
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open(path.string());
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "new";
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(std::filesystem::status(path).permissions(), mode);
  EXPECT_EQ(ReadFile(path), "new");
}

TEST(OutputFileTest, DirectoryIsAnError) {
  const TemporaryFolder directory;
  const absl::Status status = OutputFile::Open(directory.path().string()).status();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(std::string(status.message()).starts_with(directory.path().string() + ": ")) << status;
  EXPECT_EQ(FilesIn(directory.path()), 0u);
}

TEST(OutputFileTest, MissingDirectoryIsAnError) {
  const TemporaryFolder directory;
  EXPECT_FALSE(OutputFile::Open((directory.path() / "none" / "out.txt").string()).ok());
}

TEST(OutputFileTest, FilesThatAreNotRegularAreWrittenInPlace) {
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open("/dev/null");
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "gone";
  EXPECT_TRUE((*file)->Commit().ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(OutputFileTest, FailedWriteIsReportedByCommit) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open("/dev/full");
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "lost";
  EXPECT_FALSE((*file)->Commit().ok());
}

TEST(OutputFileTest, DashIsStandardOutput) {
  testing::internal::CaptureStdout();
  absl::StatusOr<std::unique_ptr<OutputFile>> file = OutputFile::Open("-");
  ASSERT_TRUE(file.ok());
  (*file)->writer() << "shown";
  const absl::Status status = (*file)->Commit();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "shown");
  EXPECT_TRUE(status.ok());
}

}  // namespace
}  // namespace hlokit::cli
