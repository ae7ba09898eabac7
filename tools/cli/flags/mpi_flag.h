// SPDX-License-Identifier: Apache-2.0
// The flags --mpi and --mpi-timeout, which are looked at before the others are parsed.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_MPI_FLAG_H_
#define HLOKIT_TOOLS_CLI_FLAGS_MPI_FLAG_H_

namespace hlokit::cli {

// Returns true if the command line has --mpi. Sets the value of --mpi-timeout, if it is a positive number.
bool WantsMpi(int argc, char** argv, double* timeout_seconds);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_MPI_FLAG_H_
