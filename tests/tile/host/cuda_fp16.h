// __half on the host.
#pragma once
typedef _Float16 __half;
