dotnet build /bl:first.binlog
dotnet build /bl:second.binlog
dotnet msbuild first.binlog -noconlog "-flp:v=diag;logfile=second-full.log;performancesummary" -fl
grep "is newer than output" second-full.log
