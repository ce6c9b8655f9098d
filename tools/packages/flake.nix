# sinter with a C compiler and the libraries of trainers on the host:
#
#   nix build ./tools/packages
#   nix run ./tools/packages -- train model.net
{
  description = "static-graph compiler for training";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { nixpkgs, ... }:
    let
      package = pkgs:
        let
          opened = with pkgs; [ libjpeg libpng libwebp pcre2 zlib ];
          linked = [ pkgs.onednn ];
        in
        pkgs.stdenv.mkDerivation {
          pname = "sinter";
          version = "0.2.0";
          src = ../..;
          nativeBuildInputs = with pkgs; [ cmake ninja makeWrapper ];
          buildInputs = opened ++ linked ++ [ pkgs.xxhash ];
          cmakeFlags = [ "-DSINTER_TESTS=OFF" "-DSINTER_WERROR=OFF" ];
          # A trainer is compiled and linked where sinter runs.
          postInstall = ''
            wrapProgram $out/bin/sinter \
              --set-default CC ${pkgs.stdenv.cc}/bin/cc \
              --prefix LIBRARY_PATH : ${pkgs.lib.makeLibraryPath linked} \
              --prefix LD_LIBRARY_PATH : \
                ${pkgs.lib.makeLibraryPath (linked ++ opened)}
          '';
          meta = {
            license = with pkgs.lib.licenses; [ asl20 llvm-exception ];
            mainProgram = "sinter";
            platforms = systems;
          };
        };
      systems = [ "x86_64-linux" "aarch64-linux" ];
    in
    {
      packages = nixpkgs.lib.genAttrs systems (system: {
        default = package nixpkgs.legacyPackages.${system};
      });
    };
}
