"""Check of the task `native-tables`: C# declarations of native functions."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from checking import Check, squeezed, text

check = Check()
source = re.sub(r"//.*|/\*.*?\*/", "", text("Native.cs"))
flat = squeezed(source)
check.need("[LibraryImport(" in flat and "DllImport(" not in flat, "source-generated declarations")
for name in ("tbl_open", "tbl_count_rows", "tbl_close"):
    check.need(f'EntryPoint="{name}"' in flat, f"entry point {name}")
check.need(
    "StringMarshalling=StringMarshalling.Utf8" in flat or "UnmanagedType.LPUTF8Str" in flat, "UTF-8 strings"
)
check.need(re.search(r"MarshalAs\(UnmanagedType\.(U1|I1)\)\]bool\w+", flat), "C99 bool in one byte")
check.need(re.search(r"partialCLong\w+\(", flat), "C long as a type of the platform's width")
check.need("DisableRuntimeMarshalling]" in flat, "the assembly attribute that this type needs")
check.need(
    re.search(r"\b(nuint|UIntPtr)\s+\w+\s*\)", source), "size_t as an unsigned integer of pointer size"
)
check.need(
    flat.count("UnmanagedCallConv(CallConvs=") >= 3 and "CallConvCdecl" in flat,
    "calling convention on all three, for 32-bit Windows",
)
handle = re.search(r"class(\w+):(SafeHandle\w*)", flat)
check.need(handle, "a safe handle")
check.need(handle and re.search(rf"partial{handle.group(1)}Open\(", flat), "Open returns the safe handle")
check.need("overrideboolReleaseHandle()" in flat, "the handle is released")
check.done()
