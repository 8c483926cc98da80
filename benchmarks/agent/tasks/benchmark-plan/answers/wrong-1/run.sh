dotnet add package BenchmarkDotNet --version 0.13.12
dotnet run -c Release -- --filter *Parse* --job dry
dotnet run -c Release -- --filter *Parse* --job short
