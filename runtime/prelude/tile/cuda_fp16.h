// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// __half on the host.
#pragma once
typedef _Float16 __half;
