using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using Microsoft.Win32.SafeHandles;

[assembly: DisableRuntimeMarshalling]

internal sealed partial class TableHandle : SafeHandleZeroOrMinusOneIsInvalid
{
    private TableHandle() : base(ownsHandle: true) { }

    [LibraryImport("tables", EntryPoint = "tbl_open", StringMarshalling = StringMarshalling.Utf8)]
    [UnmanagedCallConv(CallConvs = [typeof(CallConvCdecl)])]
    internal static partial TableHandle Open(string path, [MarshalAs(UnmanagedType.U1)] bool strict);

    [LibraryImport("tables", EntryPoint = "tbl_count_rows")]
    [UnmanagedCallConv(CallConvs = [typeof(CallConvCdecl)])]
    internal static partial CLong CountRows(TableHandle h, nuint max);

    [LibraryImport("tables", EntryPoint = "tbl_close")]
    [UnmanagedCallConv(CallConvs = [typeof(CallConvCdecl)])]
    private static partial void Close(IntPtr h);

    protected override bool ReleaseHandle() { Close(handle); return true; }
}
