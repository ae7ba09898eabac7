// SPDX-License-Identifier: Apache-2.0
// What another user can change is not opened: directories at each level, files, links, and modules of programs.
#include "io/stores/private_directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/temporary_folder.h"

namespace hlokit {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kOther = 65534;

std::string MessageOf(const absl::Status& status) { return std::string(status.message()); }

class PrivateDirectoryTest : public testing::Test {
 protected:
  absl::Status Open() const { return OpenPrivateDirectory(last_.string(), /*create=*/false).status(); }

  const TemporaryFolder temporary_;
  const fs::path top_ = temporary_.path() / "top", middle_ = top_ / "middle", last_ = middle_ / "last";
};

TEST_F(PrivateDirectoryTest, AllThatItMakesIsForThisUserAlone) {
  EXPECT_TRUE(absl::IsNotFound(Open()));
  const mode_t before = umask(0);
  EXPECT_TRUE(OpenPrivateDirectory(last_.string(), /*create=*/true).ok());
  umask(before);
  for (const fs::path& path : {top_, middle_, last_}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_mode & 07777, 0700u) << path;
  }
  EXPECT_TRUE(Open().ok());
}

TEST_F(PrivateDirectoryTest, EachLevelIsChecked) {
  ASSERT_TRUE(OpenPrivateDirectory(last_.string(), /*create=*/true).ok());
  for (const fs::path& path : {top_, middle_, last_}) {
    for (const mode_t mode : {0770, 0702, 0777}) {
      ASSERT_EQ(chmod(path.c_str(), mode), 0);
      const absl::Status status = Open();
      EXPECT_TRUE(absl::IsPermissionDenied(status)) << path << " " << status;
      EXPECT_EQ(MessageOf(status), path.string() + " can be written to by other users");
    }
    // As /tmp: what lies in it can be replaced by its owner only, and is checked itself.
    ASSERT_EQ(chmod(path.c_str(), 01777), 0);
    EXPECT_EQ(Open().ok(), path != last_) << path;
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
    EXPECT_TRUE(Open().ok()) << path;
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  for (const fs::path& path : {top_, middle_, last_}) {
    ASSERT_EQ(chown(path.c_str(), kOther, gid_t(-1)), 0);
    const absl::Status status = Open();
    EXPECT_EQ(MessageOf(status).find(path.string() + " belongs to another user"), 0u) << status;
    ASSERT_EQ(chown(path.c_str(), 0, gid_t(-1)), 0);
  }
}

TEST_F(PrivateDirectoryTest, LinksOnTheWayAreFollowedIfTheyAreSafe) {
  ASSERT_TRUE(OpenPrivateDirectory(last_.string(), /*create=*/true).ok());
  const auto open = [](const fs::path& path) { return OpenPrivateDirectory(path.string(), /*create=*/false).status(); };
  const fs::path absolute = temporary_.path() / "absolute", relative = temporary_.path() / "relative";
  fs::create_symlink(top_, absolute);
  fs::create_symlink("top/../top/middle", relative);
  EXPECT_TRUE(open(absolute / "middle/last").ok()) << open(absolute / "middle/last");
  EXPECT_TRUE(open(relative / "last").ok()) << open(relative / "last");
  fs::create_symlink(last_, temporary_.path() / "to-last");
  EXPECT_TRUE(absl::IsPermissionDenied(open(temporary_.path() / "to-last")));
  fs::create_symlink("loop", temporary_.path() / "loop");
  EXPECT_TRUE(absl::IsFailedPrecondition(open(temporary_.path() / "loop/last")));
  // What a link leads to is checked as well.
  ASSERT_EQ(chmod(top_.c_str(), 0777), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(open(absolute / "middle/last")));
  EXPECT_TRUE(absl::IsPermissionDenied(open(relative / "last")));
  ASSERT_EQ(chmod(top_.c_str(), 0700), 0);
  if (geteuid() != 0) GTEST_SKIP() << "only root can give links to another user";
  ASSERT_EQ(lchown(absolute.c_str(), kOther, gid_t(-1)), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(open(absolute / "middle/last")));
}

TEST_F(PrivateDirectoryTest, FilesAndSubdirectoriesAreCheckedWhenTheyAreOpened) {
  const absl::StatusOr<FileDescriptor> root = OpenPrivateDirectory(last_.string(), /*create=*/true);
  ASSERT_TRUE(root.ok());
  const auto file = [&](const char* name) { return OpenPrivateFile(root->get(), name, name).status(); };
  const auto subdirectory = [&](const char* name, bool create) {
    return OpenPrivateSubdirectory(root->get(), name, name, create).status();
  };
  EXPECT_TRUE(absl::IsNotFound(file("f")));
  EXPECT_TRUE(absl::IsNotFound(subdirectory("d", false)));
  EXPECT_TRUE(subdirectory("d", true).ok());
  std::ofstream(last_ / "f") << "x";
  ASSERT_EQ(chmod((last_ / "f").c_str(), 0644), 0);
  EXPECT_TRUE(file("f").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(subdirectory("f", false)));
  fs::create_symlink("f", last_ / "link");
  fs::create_symlink("d", last_ / "dlink");
  EXPECT_TRUE(absl::IsPermissionDenied(file("link")));
  EXPECT_TRUE(absl::IsPermissionDenied(subdirectory("dlink", true)));
  for (const char* const name : {"f", "d"}) {
    const bool is_file = std::string(name) == "f";
    ASSERT_EQ(chmod((last_ / name).c_str(), 01770), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(is_file ? file(name) : subdirectory(name, false))) << name;
    ASSERT_EQ(chmod((last_ / name).c_str(), 0700), 0);
    if (geteuid() != 0) continue;
    ASSERT_EQ(chown((last_ / name).c_str(), kOther, gid_t(-1)), 0);
    EXPECT_TRUE(absl::IsPermissionDenied(is_file ? file(name) : subdirectory(name, false))) << name;
  }
}

// bin/program and lib/hlokit/module.so, which it loads.
class ModuleOfTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"bin/program", "lib/hlokit/module.so"}) {
      fs::create_directories((folder() / name).parent_path());
      std::ofstream(folder() / name) << "x";
    }
    for (const char* const name : {"bin", "bin/program", "lib", "lib/hlokit", "lib/hlokit/module.so"}) Mode(name, 0755);
  }

  const fs::path& folder() const { return temporary_.path(); }
  void Mode(const char* name, mode_t mode) const { ASSERT_EQ(chmod((folder() / name).c_str(), mode), 0) << name; }
  void Owner(const char* name, uid_t owner) const {
    ASSERT_EQ(chown((folder() / name).c_str(), owner, gid_t(-1)), 0) << name;
  }
  bool IsLoaded() const {
    return CheckModuleOf((folder() / "bin/program").string(), (folder() / "lib/hlokit/module.so").string()).ok();
  }

  const TemporaryFolder temporary_;
};

TEST_F(ModuleOfTest, WhoCanChangeItCanChangeTheProgram) {
  EXPECT_TRUE(IsLoaded());
  for (const char* const name : {"lib/hlokit/module.so", "lib/hlokit", "lib"}) {
    for (const mode_t mode : {0775, 0757}) {
      Mode(name, mode);
      EXPECT_FALSE(IsLoaded()) << name;
    }
    Mode(name, 0755);
  }
  EXPECT_TRUE(IsLoaded());
  // A build with umask 002: the group can change all of it.
  for (const char* const name : {"bin", "bin/program", "lib", "lib/hlokit", "lib/hlokit/module.so"}) Mode(name, 0775);
  EXPECT_TRUE(CheckModuleOf((folder() / "bin/program").string(), (folder() / "lib/hlokit/module.so").string()).ok());
  // A program in /tmp: what is beside it may be anybody's, and is checked itself.
  Mode("bin", 01777);
  Mode("lib/hlokit", 01777);
  EXPECT_TRUE(IsLoaded());
  Mode("lib/hlokit", 0777);
  EXPECT_FALSE(IsLoaded());
}

TEST_F(ModuleOfTest, ItBelongsToTheUserOrRootOrTheProgramsOwner) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to another user";
  for (const char* const name : {"lib/hlokit/module.so", "lib/hlokit", "lib"}) {
    Owner(name, kOther);
    EXPECT_FALSE(IsLoaded()) << name;
    Owner("bin/program", kOther);
    EXPECT_TRUE(IsLoaded()) << name;
    Owner("bin/program", 0);
    Owner(name, 0);
  }
}

}  // namespace
}  // namespace hlokit
